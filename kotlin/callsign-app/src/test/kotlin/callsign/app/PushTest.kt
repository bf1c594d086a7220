package callsign.app

import callsign.app.calls.invitationIn
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class PushTest {
    private val vectors = readVectors("push")

    @Test
    fun `each push is shown as the vectors say`() {
        for (case in vectors.objects("cases")) {
            val members = membersOf(case)
            val deviceId = vectors.word("device_id").toULong()
            val action = judgePush(members, deviceId, case.number("server_now_ms"), case.text("is_seen") == "true")
            if (action is PushAction.Notice) assertEquals(members, action.members)
            assertEquals(case.getValue("action"), JsonObject(wordsOf(action)), case.word("name"))
        }
    }

    @Test
    fun `nothing is shown on a phone without a device`() {
        for (case in vectors.objects("cases"))
            assertEquals(PushAction.Nothing, judgePush(membersOf(case), null, null, false))
    }

    @Test
    fun `the call of a push names its caller, a stranger where it does not say`() {
        val members = vectors.objects("cases").map(::membersOf).first { it["alias"] == "Mum" }
        assertEquals(Person(7u, "Ann Ö.", "Mum", isContact = true), invitationIn(members)?.caller)
        val older = members - "alias" - "isContact" - "displayName"
        assertEquals(Person(7u, "Mum", isContact = false), invitationIn(older)?.caller)
    }

    @Test
    fun `a call that ended for a reason of later stops ringing`() {
        val members = mapOf("type" to "call_cancel", "callId" to "1", "reason" to "of_later")
        val stopped = PushAction.StopRinging("1", callUuid("1"), StopReason.ENDED, AfterRinging.None)
        assertEquals(stopped, judgePush(members, 1u, null, false))
    }

    @Test
    fun `a caller of whom the push says nothing is a stranger without a name`() {
        val members = mapOf("type" to "call_cancel", "callId" to "1", "reason" to "cancelled")
        val stopped = judgePush(members, 1u, null, false) as PushAction.StopRinging
        assertEquals(AfterRinging.MissedCall("", isContact = false), stopped.shows)
    }

    @Test
    fun `a push whose priority was lowered says so when it rings`() {
        for (case in vectors.objects("cases")) {
            val members = membersOf(case)
            val deviceId = vectors.word("device_id").toULong()
            val actions = listOf(false, true).map { judgePush(members, deviceId, case.number("server_now_ms"), false, it) }
            assertEquals((actions[0] as? PushAction.Ringing)?.copy(wasLowered = true) ?: actions[0], actions[1])
        }
    }

    private fun membersOf(case: JsonObject) =
        case.getValue("members").jsonObject.mapValues { (_, text) -> text.jsonPrimitive.content }

    private fun wordsOf(action: PushAction) = when (action) {
        is PushAction.Ringing -> shown("ringing") + wordsOf(action.call) + ("forMs" to JsonPrimitive(action.forMs))
        is PushAction.Over -> shown("over") + wordsOf(action.call)
        is PushAction.StopRinging -> shown("stop-ringing") + mapOf(
            "callId" to JsonPrimitive(action.callId),
            "uuid" to JsonPrimitive("${action.uuid}"),
            "reason" to JsonPrimitive(action.reason.wireName),
            "shows" to JsonObject(wordsOf(action.shows)),
        )
        is PushAction.Notice -> shown("notice") + ("type" to JsonPrimitive(action.type))
        PushAction.Nothing -> shown("nothing")
    }

    private fun wordsOf(after: AfterRinging) = when (after) {
        is AfterRinging.MissedCall ->
            shown("missed-call") + mapOf("name" to JsonPrimitive(after.name), "isContact" to JsonPrimitive(after.isContact))
        is AfterRinging.Quiet -> shown("quiet") + ("reason" to JsonPrimitive(after.reason.wireName))
        AfterRinging.None -> shown("nothing")
    }

    private fun wordsOf(call: PushedCall) = mapOf(
        "callId" to JsonPrimitive(call.callId),
        "uuid" to JsonPrimitive("${call.uuid}"),
        "callerId" to JsonPrimitive(call.callerId),
        "callerName" to JsonPrimitive(call.callerName),
        "isContact" to JsonPrimitive(call.isContact),
        "isVideo" to JsonPrimitive(call.isVideo),
    )

    private fun shown(show: String) = mapOf("show" to JsonPrimitive(show))
}
