package callsign.app

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.supervisorScope
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** User tokens: the stories that every SDK runs, and the built server, which is skipped where it is not built. */
@Timeout(120)
class UserTokensTest {
    @JvmField
    @RegisterExtension
    val server = ServerExtension(mapOf("CALLSIGN_TOKEN_AUDIENCES" to "reports"))

    private fun reply(token: String, expiresIn: Long) =
        JsonObject(mapOf("token" to JsonPrimitive(token), "expiresIn" to JsonPrimitive(expiresIn)))

    private suspend fun answerOf(act: suspend () -> String): String = try {
        act()
    } catch (error: CallsignException) {
        error.code
    }

    @TestFactory
    fun `the server is asked as the stories say`(): List<DynamicTest> =
        readVectors("user-token-cache").objects("stories").map { dynamicTest(it.word("name")) { runBlocking { play(it) } } }

    private suspend fun play(story: JsonObject) = supervisorScope {
        var step = JsonObject(emptyMap())
        var count = 0
        val asked = mutableListOf<String>()
        val last = mutableMapOf<String, String>()
        val tokens = UserTokens(this, { step.needNumber("atMs") }) { audience ->
            asked += audience
            step.text("refusal")?.let { throw CallsignException(it, "") }
            reply("${++count}", step.needNumber("expiresIn"))
        }
        for (next in story.objects("steps")) {
            step = next
            asked.clear()
            val audience = step.word("audience")
            val answer = answerOf { tokens.tokenFor(audience) }
            assertEquals(if (step.flag("asks")) listOf(audience) else emptyList(), asked)
            assertEquals(step.text("refusal") ?: if (step.flag("asks")) "$count" else last[audience], answer)
            if ("refusal" !in step) last[audience] = answer
        }
    }

    @Test
    fun `questions at the same time are one, and fail together`() = runBlocking {
        supervisorScope {
            var asked = 0
            var answer = CompletableDeferred<JsonObject>()
            val tokens = UserTokens(this, { 0 }) {
                asked++
                answer.await()
            }
            fun three() = List(3) { async(start = CoroutineStart.UNDISPATCHED) { answerOf { tokens.tokenFor("a") } } }
            val refused = three()
            answer.completeExceptionally(CallsignException("NO_ANSWER", ""))
            assertEquals(List(3) { "NO_ANSWER" }, refused.map { it.await() })
            assertEquals(1, asked)
            answer = CompletableDeferred(reply("one", 300))
            assertEquals(List(3) { "one" }, three().map { it.await() })
            assertEquals(2, asked)
        }
    }

    @Test
    fun `the server's token names the user and the service`() = runBlocking {
        val app = server.app()
        val userId = server.signIn(app, "Ann")
        val token = app.tokenFor("reports")
        assertEquals(token, app.tokenFor("reports"))
        val claims = Json.parseToJsonElement(String(java.util.Base64.getUrlDecoder().decode(token.split('.')[1]))).jsonObject
        assertEquals(listOf("$userId", "reports", server.url), listOf("sub", "aud", "iss").map { claims.text(it) })
        assertEquals("AUDIENCE_UNKNOWN", answerOf { app.tokenFor("other") })
        app.signOut()
        assertEquals("SIGNED_OUT", answerOf { app.tokenFor("reports") })
        app.close()
    }
}
