package callsign.app

import java.lang.reflect.Modifier
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** What an app shows its user for an error: by the vectors, and on the built server, whose titles come first. */
@Timeout(120)
class SentencesTest {
    private val vectors = readVectors("sentences")
    private val languageBefore = Spoken.language

    @AfterEach
    fun restore() {
        Spoken.language = languageBefore
    }

    private fun sentenceIn(language: String, code: String, members: JsonObject = JsonObject(emptyMap())): String {
        Spoken.language = language
        return CallsignException(code, "for developers", members = members).sentence
    }

    @Test
    fun `each code has its sentence in each language, and the others share one`() {
        val others = JsonObject(vectors.member("other") + ("codes" to JsonArray(listOf("INTERNAL", "ANSWER_INVALID").map(::JsonPrimitive))))
        for (sentences in vectors.objects("sentences") + others)
            for (code in sentences.texts("codes"))
                for (language in listOf("en", "vi", "de"))
                    assertEquals(sentences.word(language), sentenceIn(language, code), "$code in $language")
    }

    @Test
    fun `each code of this side has a sentence, or is one that no user can do anything about`() {
        val named = vectors.objects("sentences").flatMap { it.texts("codes") }
        val codes = CallsignException.LocalCode::class.java.fields
            .filter { Modifier.isStatic(it.modifiers) && it.type == String::class.java }
            .map { it.get(null) as String }
        assertTrue(codes.size > 25)
        assertEquals(listOf("ANSWER_INVALID"), codes - named.toSet())
    }

    @TestFactory
    fun `each case of the vectors`(): List<DynamicTest> = vectors.objects("cases").map { case ->
        dynamicTest(case.word("name")) {
            val sentence = sentenceIn(case.word("language"), case.word("code"), case.member("members"))
            assertEquals(case.word("sentence"), sentence)
        }
    }

    @Test
    fun `the server says its titles in the app's language, by request and by socket`() = runBlocking {
        val storage = MemoryAppStorage()
        val app = server.app(storage)
        server.signIn(app, "Ann")
        app.close()
        val (english, german) = listOf("en", "de-AT").map { refusalsIn(it, storage) }
        for ((code, first, second) in english.zip(german) { one, other -> Triple(one.code, one.sentence, other.sentence) })
            assertNotEquals(first, second, code)
        for (refusal in english + german)
            assertEquals(refusal.members.needText("title").removeSuffix("."), refusal.sentence.removeSuffix("."))
    }

    /** One by a request, one by the socket. */
    private suspend fun refusalsIn(language: String, storage: AppStorage): List<CallsignException> {
        val speaking = Server(server.url, language = language)
        val session = Session.open(speaking, storage)
        suspend fun refusal(act: suspend () -> Unit): CallsignException = try {
            act()
            error("it was not refused")
        } catch (error: CallsignException) {
            error
        }
        val run = ConnectionTest.Run(session, speaking) {}
        run.connect()
        run.connections.first { it == 1 }
        val refusals = listOf(refusal { session.request("GET", "call/7") }, refusal { run.send("/app/nothing") })
        run.disconnect()
        return refusals
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
