package callsign.app

import callsign.verify.AbsentList
import callsign.verify.Completeness
import callsign.verify.LogAnswer
import callsign.verify.LogKeys
import callsign.verify.OwnKeys
import callsign.verify.decodeBase64
import java.io.File
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test

/** The key log of an app that knows the index of its log. */
class IndexedLogTest {
    private val lines = File(projectRoot, "test/vectors/client-index.jsonl").readLines().map { Json.parseToJsonElement(it).jsonObject }
    private val vrfPublicKey = lines.first().member("keys").word("vrfPublicKey")

    /** A log that answers as in `test/support/index-stories.ts`. */
    @Test
    fun `the own key twice under its hash is refused, since other apps refuse it`() = runBlocking {
        val story = lines.first { it.text("story") == "an own key that was logged twice is there twice" }
        val steps = story.objects("steps")
        val own = steps.first().member("given")
        var answers = emptyList<JsonObject>()
        val keys = object : DeviceKeys by JcaDeviceKeys.generate() {
            override val publicKey = own.texts("publicKeys").single()
        }
        val device = RegisteredDevice(own.needId("userId"), own.needId("deviceId"), own.word("vrfHash"), keys)
        val events = mutableListOf<KeyEvent>()
        val storage = MemoryAppStorage()
        val keyLog = KeyLog(
            Session.open(Server("https://log.example"), storage),
            storage,
            device,
            LogKeys.ofPolicy(story.word("policy"), vrfPublicKey),
            "https://log.example",
            { request ->
                val path = request.url.removePrefix("https://log.example/")
                val answer = answers.first { it.text("path") == path && it.text("body") == request.body }
                LogAnswer(answer.needNumber("status").toInt(), decodeBase64(answer.word("answer")))
            },
            OnReset.ASK,
            null,
            null,
            events::add,
        )
        answers = steps[0].objects("exchanges")
        val report = keyLog.checkOwn()
        assertEquals(OwnKeys.Clean to Completeness.Kind.COMPLETE, report.ownKeys to report.complete)
        answers = steps[1].objects("exchanges")
        val refused = assertThrows(CallsignException::class.java) { runBlocking { keyLog.checkOwn() } }
        assertEquals("KEYS_REFUSED" to "otherKey", refused.code to refused.members.text("check"))
        assertEquals("otherKey", (events.single() as KeyEvent.Refused).refusal.check.wireName)
    }

    @Test
    fun `the proof that a user has no list is read as the server gives it`() {
        fun userOf(absent: String) = publishedUserOf(
            Json.parseToJsonElement("""{"userId":"7","devices":[]$absent}""").jsonObject,
        ).named.absent
        assertNull(userOf(""))
        val members = """"deviceId":"0","vrfHash":"aGFzaA==","vrfProof":"cHJvb2Y=""""
        assertEquals(AbsentList("aGFzaA==", "cHJvb2Y="), userOf(""","absent":{$members}"""))
        val proof = """{"index_value":[],"index_proof":"AA=="}"""
        assertEquals(AbsentList("aGFzaA==", "cHJvb2Y=", proof), userOf(""","absent":{$members,"indexProof":$proof}"""))
        val invalid = assertThrows(CallsignException::class.java) { userOf(""","absent":{"vrfHash":"aGFzaA=="}""") }
        assertEquals("ANSWER_INVALID", invalid.code)
    }
}
