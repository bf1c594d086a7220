package callsign.app

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Pushes that only the device can read: by the vectors, and as the built server makes them. */
@Timeout(120)
class SealedPushTest {
    private val vectors = readVectors("sealed-push")

    private fun opened(case: JsonObject) = openPush(case.word("pushKey"), case.needId("deviceId"), case.word("sealed"))

    @TestFactory
    fun `those of the vectors open`(): List<DynamicTest> = vectors.objects("opens").map { case ->
        dynamicTest(case.word("name")) {
            assertEquals(case.member("members").mapValues { (it.value as JsonPrimitive).content }, opened(case))
        }
    }

    @TestFactory
    fun `the others are refused`(): List<DynamicTest> = vectors.objects("refused").map { case ->
        dynamicTest(case.word("name")) { assertNull(opened(case)) }
    }

    @Test
    fun `a device asks for sealed pushes, opens them, and takes it back`() = runBlocking {
        val (ann, storage) = server.app() to MemoryAppStorage()
        server.signIn(ann, "Ann")
        val pins = developmentPins(server.url)
        val details = DeviceDetails(fcmToken = "fcm-of-bob")
        fun bob(sealedPushes: Boolean?, http: AlteredHttp = AlteredHttp(server.url)) =
            Callsign(server.url, pins, storage, device = details, http = http.client, sealedPushes = sealedPushes)
        val first = bob(true)
        server.signIn(first, "Bob")
        befriend(ann, first)
        val bobId = checkNotNull(first.userId)
        val call = ann.call(bobId)
        val ring = pushTo(bobId, "call_invitation") { true }
        assertEquals(setOf("sealed"), ring.keys)
        val ringing = first.onPush(ring) as PushAction.Ringing
        assertEquals("Ann" to call.callId, ringing.call.callerName to ringing.call.callId)
        call.end()
        val missed = first.onPush(pushTo(bobId, "missed_call") { true }) as PushAction.Notice
        assertEquals("missed_call" to call.callId, missed.type to missed.members["callId"])
        assertEquals(PushAction.Nothing, first.onPush(ring + ("sealed" to ring.getValue("sealed").reversed())))
        first.close()

        // Without the key of its storage nothing opens.
        val kept = storage.get("push-key.$bobId")
        storage.put("push-key.$bobId", null)
        val second = bob(null)
        assertEquals(PushAction.Nothing, second.onPush(ring))
        second.close()
        storage.put("push-key.$bobId", kept)

        val registered = CompletableDeferred<Unit>()
        // Its own: a registration of an app that has closed may be under way still.
        val http = AlteredHttp(server.url)
        http.after = { if (it == "register_device") registered.complete(Unit) }
        val third = bob(false, http)
        third.resume()
        registered.await()
        val next = ann.call(bobId)
        val open = pushTo(bobId, "call_invitation") { it["callId"] == next.callId }
        assertEquals(next.callId, (third.onPush(open) as PushAction.Ringing).call.callId)
        next.end()
        third.close()
        ann.close()
    }

    /** The data of a push of the type that has left for the user. */
    private suspend fun pushTo(userId: ULong, type: String, isOne: (Map<String, String>) -> Boolean): Map<String, String> {
        val request = Request.Builder().url("${server.url}/dev/pushes?userId=$userId").build()
        while (true) {
            val pushes = OkHttpClient().newCall(request).execute().use { Json.parseToJsonElement(it.body.string()) }.jsonObject
            val found = pushes.members("items").filter { it.text("kind") == type }
                .map { push -> push.member("payload").member("data").mapValues { (it.value as JsonPrimitive).content } }
                .find(isOne)
            if (found != null) return found
            delay(10)
        }
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
