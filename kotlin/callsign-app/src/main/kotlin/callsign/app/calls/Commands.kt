/** Commands of the app for a call that is there. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.KeyBinding
import callsign.app.bodyOf
import callsign.app.idsOf
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

internal fun Turn.onCommand(input: Input.OfCall) {
    val callId = input.callId
    val command = input.command
    if (call(callId) == null) return settle(command, hasEndedHere())
    when (input) {
        is Input.Join -> join(callId, command)
        is Input.Answer -> answer(callId, command)
        is Input.Decline -> decline(callId, input.reason, command)
        is Input.End -> request("POST", "call/$callId/end", Purpose.End(callId, command))
        is Input.Leave -> {
            sendLeave(callId, command)
            close(callId, CallEnding.LEFT)
        }
        is Input.Remove -> {
            val body = bodyOf(mapOf("userId" to "${input.userId}"))
            request("POST", "call/$callId/remove", Purpose.Command(callId, command), body)
        }
        is Input.SendInvite -> invite(Invite(callId, command, input.userIds, TRIES))
        is Input.Renew -> renew(callId, command)
        is Input.Resend -> resend(callId, command)
        is Input.AskForKey -> askBeside(callId, command, input.userId)
        is Input.Grant -> grant(callId, input.ask, command)
    }
}

internal fun Turn.onLeft(callId: String) = keep(device.kept.copy(leaving = device.kept.leaving - callId))

/** While the connection lasts; else the next one does it. */
internal fun Turn.leaveAgain(callId: String) {
    if (device.connection != null && callId in device.kept.leaving) sendLeave(callId)
}

internal fun Turn.invite(asked: Invite) {
    val held = call(asked.callId)?.newestKey ?: return settle(asked.command, keyMissing())
    val sealing = asked.copy(epoch = held.epoch)
    seal(held.key, Receivers.Users(asked.userIds), KeyBinding(asked.callId, held.epoch), Purpose.InviteSeal(sealing))
}

internal fun Turn.onInviteSealed(asked: Invite, texts: JsonObject) {
    val body = buildJsonObject {
        put("calleeIds", idsOf(asked.userIds))
        put("epoch", JsonPrimitive(asked.epoch))
        put("encryptedAESKeys", texts)
    }
    request("POST", "call/${asked.callId}/invite", Purpose.SendInvite(asked), body)
}
