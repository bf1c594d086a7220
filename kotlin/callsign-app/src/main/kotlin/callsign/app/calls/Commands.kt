/** Commands of the app for a call that is there. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallRecord
import callsign.app.bodyOf
import callsign.app.idsOf
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

internal fun Turn.onCommand(input: Input.OfCall) {
    val callId = input.callId
    val command = input.command
    val call = call(callId) ?: return settle(command, hasEndedHere())
    when (input) {
        is Input.Join -> join(callId, command)
        is Input.Answer -> answer(callId, command, input.evenIfOld)
        is Input.AcceptDevice -> {
            acceptDevice(input.name)
            settle(command)
        }
        is Input.Decline -> decline(callId, input.reason, command)
        is Input.End -> request("POST", "call/$callId/end", Purpose.End(callId, command))
        is Input.Leave -> {
            sendLeave(callId, command)
            close(callId, CallEnding.LEFT)
        }
        is Input.Remove -> {
            val userId = input.userId
            val isKnown = userId in call.removed
            // The server refuses it to all but the host.
            val isHost = call.record?.hostUserId == device.userId
            if (isHost && !isKnown) setRemoved(callId, call.removed + userId)
            requestRemoval(Purpose.Remove(callId, command, userId, isKnown))
        }
        is Input.SendInvite -> {
            setRemoved(callId, call.removed - input.userIds.toSet())
            invite(Invite(callId, command, input.userIds, TRIES))
        }
        is Input.Renew -> renew(callId, command)
        is Input.Resend -> resend(callId, command)
        is Input.UseKey -> {
            use(callId, input.epoch)
            settle(command)
        }
        is Input.AskForKey -> askBeside(callId, command, input.userId)
        is Input.Grant -> grant(callId, input.ask, command)
    }
}

internal fun Turn.requestRemoval(purpose: Purpose.Remove) =
    request("POST", "call/${purpose.callId}/remove", purpose, bodyOf(mapOf("userId" to "${purpose.userId}")))

internal fun Turn.onLeft(callId: String) = keep(device.kept.copy(leaving = device.kept.leaving - callId))

/** While the connection lasts; else the next one does it. */
internal fun Turn.leaveAgain(callId: String) {
    if (device.connection != null && callId in device.kept.leaving) sendLeave(callId)
}

/** The app hears of it. Where the server has carried it out all the same, the record says so. */
internal fun Turn.onNotRemoved(callId: String, userId: ULong) {
    val call = call(callId) ?: return forgetRemoved(callId, userId)
    setRemoved(callId, call.removed - userId)
}

/** Also after a restart, before there is another key. */
private fun Turn.setRemoved(callId: String, removed: List<ULong>) {
    val call = call(callId) ?: return
    if (removed.size == call.removed.size) return
    change(callId) { copy(removed = removed) }
    call.newestKey?.let { noteOpened(callId, it.epoch) }
}

/** Those who come have the key of a new epoch, as all in the call: it opens nothing of before. */
internal fun Turn.invite(asked: Invite) {
    if (call(asked.callId)?.newestKey == null) return settle(asked.command, keyMissing())
    request("GET", "call/${asked.callId}", Purpose.InviteRead(asked.copy(key = null)))
}

internal fun Turn.onInviteRead(asked: Invite, record: CallRecord) {
    val callId = asked.callId
    if (call(callId) == null) return settle(asked.command, hasEndedHere())
    val key = makeKey()
    val epoch = record.keyEpoch + 1
    val receivers = Receivers.Participants(receiversIn(callId, record), asked.userIds)
    seal(key, receivers, Use(callId, epoch), Purpose.InviteSeal(asked.copy(key = key, epoch = epoch)))
}

internal fun Turn.onInviteSealed(asked: Invite, texts: JsonObject, set: KeySet) {
    val body = buildJsonObject {
        put("calleeIds", idsOf(asked.userIds))
        put("epoch", JsonPrimitive(asked.epoch))
        put("keyMembers", JsonPrimitive(set.keyMembers))
        put("encryptedAESKeys", texts)
    }
    request("POST", "call/${asked.callId}/invite", Purpose.SendInvite(asked.copy(set = set)), body)
}

/** The members may have the new key. This device can't know: it makes another one, or asks for theirs. */
internal fun Turn.onUnheard(callId: String) {
    if (call(callId)?.record?.hostUserId == device.userId) planAgain(callId)
    else askBeside(callId, command = null, userId = null)
}

internal fun Turn.onInvited(asked: Invite, record: CallRecord) {
    val (epoch, key) = checkNotNull(asked.epoch) to checkNotNull(asked.key)
    hold(asked.callId, HeldKey(epoch, key, device.userId, checkNotNull(asked.set)))
    showIfNewer(asked.callId, record)
    settle(asked.command)
}
