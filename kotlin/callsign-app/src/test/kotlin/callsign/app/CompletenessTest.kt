package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.verify.CompletenessDemand
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import okhttp3.ResponseBody.Companion.toResponseBody
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.extension.RegisterExtension

/** An app whose keys are proved by the log's index to be the newest, with a server that keeps one. */
class CompletenessTest {
    @Volatile
    private var lie: (operation: String, answer: JsonObject) -> JsonObject = { _, answer -> answer }
    private val http = OkHttpClient.Builder().addInterceptor(::answer).build()

    private suspend fun app(completeness: CompletenessDemand? = null, storage: AppStorage = MemoryAppStorage()) =
        Callsign(server.url, developmentPins(server.url), storage, http = http, completeness = completeness)

    /** Two contacts with a device list each; the first one's app is made so. */
    private suspend fun contacts(completeness: CompletenessDemand? = null, storage: AppStorage = MemoryAppStorage()): TwoContacts {
        val ann = app(completeness, storage)
        server.signIn(ann, "Ann")
        val bob = server.app()
        val bobId = server.signIn(bob, "Bob")
        for (app in listOf(ann, bob)) app.devices.listState.filterIsInstance<OwnListState.Listed>().first()
        // A link would bring the list and the checkpoint of the index.
        ann.contacts.request(bobId)
        bob.contacts.accept(checkNotNull(ann.userId))
        return TwoContacts(ann, bob, bobId)
    }

    private class TwoContacts(val ann: Callsign, val bob: Callsign, val bobId: ULong) {
        /** The check at which the keys of the second one are refused to the first. */
        suspend fun refusal(): String? = try {
            ann.contacts.comparisonCode(bobId)
            null
        } catch (error: CallsignException) {
            assertEquals(LocalCode.KEYS_REFUSED, error.code)
            error.members.text("check")
        }

        suspend fun close() {
            ann.close()
            bob.close()
        }
    }

    /** Operations of the app, and the log's lookups as `get-public-keys`. */
    private fun answer(chain: Interceptor.Chain): Response {
        val request = chain.request()
        val answer = chain.proceed(request)
        val operation = request.url.encodedPath.removePrefix("/app").removePrefix("/api/")
        val body = answer.body
        if (request.header("Upgrade") != null || !answer.isSuccessful || operation !in OPERATIONS) return answer
        val altered = lie(operation, Json.parseToJsonElement(body.string()).jsonObject)
        return answer.newBuilder().body("$altered".toResponseBody(body.contentType())).build()
    }

    /** The answer with each result or user changed. */
    private fun changed(answer: JsonObject, name: String, change: (JsonObject) -> JsonObject): JsonObject =
        JsonObject(answer + (name to JsonArray(answer.members(name).map(change))))

    /** There is no index before the log has an entry. */
    @BeforeEach
    fun awaitIndex() = runBlocking {
        val first = server.app()
        server.signIn(first, "First")
        val request = Request.Builder().url("${server.url}/index/checkpoint").build()
        while (OkHttpClient().newCall(request).execute().use { it.code } != 200) delay(10)
        first.close()
    }

    @Test
    fun `keys that the index proves are used, and it is remembered and told to others`() = runBlocking {
        val storage = MemoryAppStorage()
        val contacts = contacts(CompletenessDemand.DEMAND, storage)
        val call = contacts.ann.call(contacts.bobId)
        contacts.bob.ringing.first().answer()
        call.end()
        val link = contacts.ann.contacts.shareLink()
        assertTrue("&n=" in link && "&i=" in link, link)
        assertTrue((contacts.bob.contacts.open(link) as Opened.Link).isNamed)
        val pins = developmentPins(server.url)
        val key = "checkpoint.${contacts.ann.userId}.${pins.name}"
        assertNotNull(storage.get(key))
        assertTrue("${pins.origin}/index" in checkNotNull(storage.get("$key.index")))
        contacts.close()
    }

    @Test
    fun `an answer without the proof is refused, unless none was ever there or the app asks for none`() = runBlocking {
        lie = { operation, answer ->
            if (operation == "get-public-keys") changed(answer, "results") { JsonObject(it - "indexProof") }
            else changed(answer, "users") { JsonObject(it - "absent") }
        }
        val unindexed = contacts()
        assertNull(unindexed.refusal())
        lie = { _, answer -> answer }
        assertNull(unindexed.refusal())
        lie = { _, answer -> changed(answer, if ("results" in answer) "results" else "users") { JsonObject(it - "indexProof") } }
        assertEquals("completeness", unindexed.refusal())
        val off = contacts(CompletenessDemand.OFF)
        assertNull(off.refusal())
        listOf(unindexed, off).forEach { it.close() }
    }

    @Test
    fun `a device list that the server leaves out at the first meeting is missed`() = runBlocking {
        val demanding = contacts(CompletenessDemand.DEMAND)
        lie = { operation, answer ->
            if (operation == "get-public-keys") answer
            else changed(answer, "users") { user ->
                if (user.needId("userId") == demanding.bobId) JsonObject(user - "deviceList" - "deviceListHash") else user
            }
        }
        assertEquals("completeness", demanding.refusal())
        demanding.close()
    }

    companion object {
        private val OPERATIONS = setOf("get-public-keys", "user/publicKeys")

        @JvmField
        @RegisterExtension
        val server = ServerExtension(mapOf("CALLSIGN_INDEX_SECONDS" to "1"))
    }
}
