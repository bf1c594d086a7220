/** A call that rings here: its invitation, the key that came with it, and its end without an answer. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.DeclineReason
import callsign.app.Person
import callsign.app.SetHints
import callsign.app.bodyOf
import callsign.app.callerIn
import callsign.app.flag
import callsign.app.hasCode
import callsign.app.keyFromIn
import callsign.app.needNumber
import callsign.app.needText
import callsign.app.needTimeMs
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** An invitation, by socket or by push. Times are milliseconds since 1970. */
internal data class Invitation(
    val callId: String,
    val caller: Person,
    val isVideo: Boolean,
    val isOnGoing: Boolean,
    val encryptedAESKey: String,
    val keyEpoch: Long,
    /** The device that has sealed the key, as the server says. */
    val keyFrom: Sender?,
    val sentAtMs: Long,
    val expiresAtMs: Long,
    /** It came by a push whose priority Firebase has lowered. */
    val wasLowered: Boolean = false,
)

internal fun invitationOf(members: JsonObject) = Invitation(
    callId = members.needText("callId"),
    caller = callerIn(members),
    isVideo = members.flag("isVideo"),
    isOnGoing = members.flag("isOnGoing"),
    encryptedAESKey = members.needText("encryptedAESKey"),
    keyEpoch = members.needNumber("keyEpoch"),
    keyFrom = keyFromIn(members),
    sentAtMs = members.needNumber("sentAt"),
    expiresAtMs = members.needTimeMs("expiresAt"),
)

/**
 * The invitation of a push, whose members are texts. Null where the key was too long for a push, or the push makes no sense: the
 * call rings with the next connection.
 */
internal fun invitationIn(members: Map<String, String>, wasLowered: Boolean = false): Invitation? = try {
    // A caller of whom it says nothing is a stranger.
    if ("encryptedAESKey" !in members) null
    else invitationOf(bodyOf(mapOf("isContact" to "false") + members)).copy(wasLowered = wasLowered)
} catch (_: CallsignException) {
    null
}

internal fun Turn.ringingOf(invitation: Invitation) = Ringing(
    callId = invitation.callId,
    isVideo = invitation.isVideo,
    isOnGoing = invitation.isOnGoing,
    caller = invitation.caller,
    text = invitation.encryptedAESKey,
    epoch = invitation.keyEpoch,
    from = invitation.keyFrom,
    invitedAtMs = invitation.sentAtMs,
    untilMs = nowMs + ringsForMs(invitation),
    wasLowered = invitation.wasLowered,
)

/** From an item of `call/pending`; null where it does not ring for this device. */
internal fun Turn.ringingIn(record: CallRecord): Ringing? {
    val own = record.participant(device.userId) ?: return null
    return Ringing(
        callId = record.callId,
        isVideo = record.isVideo,
        isOnGoing = record.isOnGoing,
        caller = record.caller ?: record.person(own.invitedBy),
        text = record.encryptedAESKey ?: return null,
        epoch = record.keyEpoch,
        from = record.keyFrom,
        invitedAtMs = own.invitedAtMs,
        untilMs = nowMs + record.ringTimeoutMs,
    )
}

/** Rings, unless it is known, has ended here, or has rung out. */
internal fun Turn.ring(ringing: Ringing) {
    val callId = ringing.callId
    if (call(callId) != null || ringing.untilMs <= nowMs || hasEnded(callId, ringing.invitedAtMs)) return
    val invited = Invited(ringing.epoch, ringing.text, ringing.from)
    add(ringing, Phase.RingingIn(Rings(invited, ringing.untilMs, wasLowered = ringing.wasLowered)))
    emit(callId, News.Ringing)
    openInvitation(callId, invited.named)
    tellRinging(callId)
}

/** The caller's screen can say so; that it rings does not hang on it. */
internal fun Turn.tellRinging(callId: String) {
    val rings = (call(callId)?.phase as? Phase.RingingIn)?.rings ?: return
    val body = if (rings.wasLowered) mapOf("wasLowered" to JsonPrimitive(true)) else emptyMap()
    act(Act.Send("/app/call/$callId/ringing", JsonObject(body)))
}

internal fun Turn.onRingDue(callId: String) = decline(callId, DeclineReason.TIMEOUT, null)

internal fun Turn.decline(callId: String, reason: DeclineReason, command: Int?) {
    val phase = call(callId)?.phase
    if (phase !is Phase.RingingIn) return settle(command, notRinging())
    if (phase.rings.mayBeIn) sendLeave(callId, command)
    close(callId, if (reason == DeclineReason.TIMEOUT) CallEnding.MISSED else CallEnding.DECLINED, isOver = false)
    if (phase.rings.mayBeIn) return
    val body = bodyOf(mapOf("reason" to reason.name.lowercase()))
    request("POST", "call/$callId/decline", Purpose.Command(callId, command), body)
}

/** Another device of the user has answered, or none has. Where this one asks to join, the answer says whether the call is here. */
internal fun Turn.onRungOut(callId: String, reason: CallEnding) {
    val call = call(callId) ?: return
    val phase = call.phase
    if (phase is Phase.RingingIn) {
        if (phase.rings.mayBeIn) sendLeave(callId)
        return close(callId, reason)
    }
    if (phase !is Phase.Entering) return
    // The answer has failed already where the end is waited for.
    val isAsked = phase.step == EnteringStep.JOINING || phase.step == EnteringStep.OPENING
    if (!isAsked || call.end != EndState.None) return close(callId, reason)
    change(callId) { copy(phase = phase.copy(rungOut = reason)) }
}

/** It still rings: the invitation's key is not good any more. The new one has to come from a device that has the old one. */
internal fun Turn.onRenewedKey(callId: String, event: JsonObject, rings: Rings) {
    val text = event.needText("encryptedAESKey")
    val epoch = event.needNumber("epoch")
    val before = rings.invited
    // Any member can send the present key again, or what they say is it.
    if (epoch < before.epoch || (epoch == before.epoch && before.state != InvitedState.REFUSED)) return
    val invited = Invited(epoch, text, sealerOf(event), before.key ?: before.after, changeIn(event))
    change(callId) { copy(phase = Phase.RingingIn(rings.copy(invited = invited))) }
    openInvitation(callId, invited.named)
}

/** The record says whom the call has, and for which devices its keys are. */
internal fun Turn.openInvitation(callId: String, key: InvitedKey) =
    request("GET", "call/$callId", Purpose.InvitedRead(callId, key))

/** Gives why the key is not taken, unless it may be. */
internal fun Turn.onInvitedRead(record: CallRecord, key: InvitedKey): CallsignException? {
    val callId = record.callId
    val call = call(callId) ?: return null
    val (epoch, text, from, after, change) = call.invited?.takeIf { it.named == key } ?: return null
    refusalOfEpoch(callId, epoch)?.let { return it }
    val callerId = call.caller.userId
    val senders = (if (from == null) sendersIn(record, callerId) else listOf(from))
        .filter { if (after == null) it.userId == callerId else after.isForSomeDeviceOf(it.userId) }
    if (senders.isEmpty()) return if (from == null || after == null) callerNotSealer() else notFromMember(from)
    val hints = SetHints(setsIn(call, record), change)
    open(text, senders, Use(callId, epoch), hints, Purpose.InvitedOpen(callId, key, record))
    return null
}

/** Notes the outcome for the invitation's key; false where another key counts by now. */
internal fun Turn.onInvitedOpened(callId: String, named: InvitedKey, key: HeldKey): Boolean {
    val invited = openingOf(callId, named) ?: return false
    setInvited(callId, invited.copy(state = InvitedState.OPENED, key = key.copy(epoch = invited.epoch)))
    change(callId) { copy(isVerified = true) }
    return true
}

internal fun Turn.onInvitedRefused(callId: String, key: InvitedKey, failure: CallsignException): Boolean {
    val invited = openingOf(callId, key) ?: return false
    setInvited(callId, invited.copy(state = InvitedState.REFUSED))
    if (!failure.hasCode("CALL_ENDED")) change(callId) { copy(isVerified = false) }
    report(callId, failure)
    return true
}

internal fun Turn.setInvited(callId: String, invited: Invited) = when (val phase = call(callId)?.phase) {
    is Phase.RingingIn -> change(callId) { copy(phase = Phase.RingingIn(phase.rings.copy(invited = invited))) }
    is Phase.Entering -> change(callId) { copy(phase = phase.copy(from = phase.from?.copy(invited = invited))) }
    else -> Unit
}

/** A call that was not there. */
internal fun Turn.add(ringing: Ringing, phase: Phase) {
    val (callId, isVideo, isOnGoing, caller) = ringing
    val isIncoming = caller.userId != device.userId
    add(DeviceCall(callId, isVideo, isOnGoing, isIncoming, caller, ringing.invitedAtMs, phase, record = null))
}

internal fun Turn.add(record: CallRecord, caller: Person, phase: Phase, shown: CallRecord? = record) {
    val isIncoming = caller.userId != device.userId
    add(DeviceCall(record.callId, record.isVideo, record.isOnGoing, isIncoming, caller, invitedAtMs = 0, phase, shown))
}

private fun Turn.add(call: DeviceCall) {
    // Also where it was left, and is come back to.
    val removed = device.kept.opened.find { it.callId == call.callId }?.removed.orEmpty()
    device = device.copy(calls = device.calls + call.copy(removed = removed))
}

/** Devices in the call that may have sealed its key, the likeliest first. */
internal fun Turn.sendersIn(record: CallRecord, callerId: ULong? = null): List<Sender> =
    record.participants
        .filter { it.userId != device.userId }
        .mapNotNull { one -> one.deviceId?.let { Sender(one.userId, it) } }
        .sortedByDescending { it.userId == callerId || it.userId == record.hostUserId }

/** How much longer an invitation rings, by the server's clock; as long as it was meant to while that is not known. */
private fun Turn.ringsForMs(invitation: Invitation): Long {
    val ringMs = invitation.expiresAtMs - invitation.sentAtMs
    return if (device.clock.isKnown) minOf(ringMs, invitation.expiresAtMs - serverMs) else ringMs
}

private fun Turn.openingOf(callId: String, key: InvitedKey): Invited? =
    call(callId)?.invited?.takeIf { it.named == key && it.state == InvitedState.OPENING }

internal fun notRinging() = CallsignException("CALL_NOT_ACTIVE", "The call does not ring here.")
