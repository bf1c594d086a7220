package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.PushAction
import callsign.app.judgePush
import callsign.app.timeMsOf
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertInstanceOf
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** A server that tells nonsense: stories have none, as each language reads it in its own way. */
class NonsenseTest {
    private val player = StoryPlayer(readStories())

    private fun play(input: String, at: Long = 0): List<String> {
        val step = JsonObject(mapOf("at" to JsonPrimitive(at), "in" to Json.parseToJsonElement(input)))
        return player.play(step).map { (it as? JsonPrimitive)?.content ?: it.jsonObject.keys.single() }
    }

    private fun record(keyRotationIn: Long = 600) = """{
        "callId": "1", "version": 2, "status": "active", "isVideo": false, "isOnGoing": false, "initiatorId": "2",
        "hostUserId": "2", "keyEpoch": 1, "keyRotationIn": $keyRotationIn, "ringTimeoutIn": 60, "media": { "kind": "client" },
        "participants": [
            { "userId": "1", "deviceId": "10", "state": "joined", "invitedBy": "2", "invitedAt": "1970-01-01T00:00:00Z" },
            { "userId": "2", "deviceId": "20", "state": "joined", "invitedBy": "2", "invitedAt": "1970-01-01T00:00:00Z" }
        ]
    }"""

    private fun connect() {
        play("""{ "on": "restarted", "kept": { "callId": "1" } }""")
        play("""{ "on": "connected", "connection": 1, "kept": { "callId": "1" } }""")
    }

    @Test
    fun `a message that waits for the call of before a restart fails alone`() {
        connect()
        play("""{ "on": "queue", "event": { "type": "participant_request_rejoin", "callId": "1" } }""")
        play("""{ "on": "queue", "event": { "type": "call_moved", "callId": "1", "version": 1 } }""")
        play("""{ "on": "done", "of": "GET call/pending", "body": { "items": [] } }""")
        val acts = play("""{ "on": "done", "of": "GET call/1", "body": ${record()} }""")
        val settled = listOf("participant_request_rejoin: ANSWER_INVALID", "call_moved", "connected").map { "settle $it" }
        assertEquals(settled, acts.filter { it.startsWith("settle") })
        assertEquals(listOf("1 rejoining"), player.calls)
    }

    @Test
    fun `a time that no number of milliseconds can tell is invalid`() {
        val error = assertThrows(CallsignException::class.java) { timeMsOf("+999999999-01-01T00:00:00Z") }
        assertEquals(LocalCode.ANSWER_INVALID, error.code)
        val members = mapOf("type" to "call_invitation", "sentAt" to "0", "expiresAt" to "+999999999-01-01T00:00:00Z")
        assertInstanceOf(PushAction.Over::class.java, judgePush(members, 10u, 0, isSeen = false))
    }

    @Test
    fun `an invitation by push that makes no sense waits for the next connection`() {
        assertNull(invitationIn(mapOf("type" to "call_invitation", "callId" to "1", "encryptedAESKey" to "text A")))
    }

    @Test
    fun `a duration that is too long for a sum does not come at once`() {
        connect()
        play("""{ "on": "done", "of": "GET call/pending", "body": { "items": [] } }""")
        play("""{ "on": "done", "of": "GET call/1", "body": ${record(keyRotationIn = Long.MAX_VALUE / 1_000)} }""", at = 5_000)
        assertTrue(checkNotNull(player.nextMs) > 5_000)
        play("""{ "on": "done", "of": "POST call/1/request-rejoin", "body": { "expiresIn": ${Long.MAX_VALUE / 1_000} } }""")
        assertTrue(checkNotNull(player.nextMs) > 5_000)
    }
}
