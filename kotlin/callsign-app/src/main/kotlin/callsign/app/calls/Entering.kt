/** The way into a call: its key is opened, the call that this device is in is left for it, and the server is asked. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.ParticipantState
import callsign.app.SetHints
import callsign.app.endingOf
import callsign.app.hasCode
import callsign.app.namedOrNull
import callsign.app.needId
import callsign.app.needNumber
import callsign.app.needText
import callsign.app.text
import kotlinx.serialization.json.JsonObject

/** Answers a call that rings here. */
internal fun Turn.answer(callId: String, command: Int, evenIfOld: Boolean = false) {
    val phase = call(callId)?.phase
    if (phase !is Phase.RingingIn) return settle(command, notRinging())
    val invited = phase.rings.invited
    enterPhase(callId, Phase.Entering(phase.rings, EnteringStep.KEY, listOf(command), evenIfOld = evenIfOld))
    if (invited.state != InvitedState.REFUSED) return onInvitedKey(callId)
    // The log may not have been reachable when it began to ring.
    setInvited(callId, invited.copy(state = InvitedState.OPENING))
    openInvitation(callId, invited.named)
}

/** The invitation's key was opened, or not. */
internal fun Turn.onInvitedKey(callId: String, failure: CallsignException? = null) {
    val phase = call(callId)?.phase
    if (phase !is Phase.Entering || phase.step != EnteringStep.KEY) return
    if (failure != null) return fail(callId, failure)
    if (phase.from?.invited?.state == InvitedState.OPENED) clear(callId)
}

/** Comes in without ringing: from another device of the user, or back. */
internal fun Turn.join(callId: String, command: Int) {
    val call = call(callId) ?: return request("GET", "call/$callId", Purpose.JoinFind(callId, command))
    when (val phase = call.phase) {
        is Phase.RingingIn -> answer(callId, command)
        is Phase.Entering -> change(callId) { copy(phase = phase.copy(commands = phase.commands + command)) }
        else -> settle(command, callId = callId)
    }
}

internal fun Turn.onFound(record: CallRecord, command: Int) {
    val callId = record.callId
    if (call(callId) != null) return join(callId, command)
    val invitedBy = record.participant(device.userId)?.invitedBy ?: record.initiatorId
    val phase = Phase.Entering(null, EnteringStep.CLEARING, listOf(command))
    add(record, record.person(invitedBy), phase, shown = null)
    clear(callId)
}

/** Leaves the call that this device is in for it, then asks to join. */
internal fun Turn.clear(callId: String) {
    setStep(callId, EnteringStep.CLEARING)
    giveUpEntering(callId)
    val other = otherThan(callId)
    if (other != null) return leaveFor(callId, other.callId, other)
    setStep(callId, EnteringStep.JOINING)
    // The one of before the app was closed is still to be restored.
    val before = device.kept.callId
    if (before != null && before != callId && call(before) == null) sendLeave(before)
    // Without it, an app that ends before the answer would never know that it is in.
    keep(device.kept.copy(callId = callId))
    request("POST", "call/$callId/join", Purpose.Join(callId))
}

internal fun Turn.onCleared(callId: String, other: String, endReason: String?) {
    // Its start may be answered yet.
    if (call(other) == null) noteEnd(other, invitedAtMs = 0)
    close(other, endReason?.let(::endingOf) ?: CallEnding.LEFT)
    if (isClearing(callId)) clear(callId)
}

internal fun Turn.onNotCleared(callId: String, other: String, failure: CallsignException) {
    if (failure.isGone) onCleared(callId, other, null) else if (isClearing(callId)) fail(callId, failure)
}

internal fun Turn.onJoined(record: CallRecord) {
    val callId = record.callId
    // Else it would be shown as a participant.
    val call = call(callId) ?: return leaveUnknown(callId)
    val phase = call.phase as? Phase.Entering ?: return
    if (record.version <= call.movedVersion) return close(callId, CallEnding.MOVED)
    val own = record.participant(device.userId)
    if (own?.state != ParticipantState.JOINED) {
        // A call has begun meanwhile: the server would not let this device come back.
        if (otherThan(callId) != null) return clear(callId)
        // It has to come back by a key, whatever it has: they had left, or declined with another device.
        return done(callId) { ask(record) }
    }
    val invited = phase.from?.invited?.key
    val key = (call.key.held + listOfNotNull(invited)).find { it.epoch == record.keyEpoch }
    if (key != null) return done(callId) { enter(record, key) }
    val sealed = record.encryptedAESKey ?: return done(callId) { ask(record) }
    setStep(callId, EnteringStep.OPENING)
    val from = record.keyFrom
    val senders = (if (from == null) sendersIn(record) else listOf(from))
        .filter { if (invited == null) it.userId == own.invitedBy else invited.isForSomeDeviceOf(it.userId) }
    val stranger = if (from == null) callerNotSealer() else notFromMember(from)
    val refusal = refusalOfEpoch(callId, record.keyEpoch) ?: stranger.takeIf { senders.isEmpty() }
    if (refusal != null) return onJoinedRefused(record, refusal)
    open(
        sealed,
        senders,
        Use(callId, record.keyEpoch),
        SetHints(setsIn(call, record)),
        Purpose.JoinedOpen(callId, record),
    )
}

internal fun Turn.onNotJoined(callId: String, failure: CallsignException) {
    if (call(callId) == null) {
        if (failure.isUnheard) leaveUnknown(callId)
        return
    }
    when (failure.code) {
        // One that the app knows nothing of.
        "ALREADY_IN_CALL" -> leaveFor(callId, failure.members.text("callId").orEmpty(), null)
        "REJOIN_REQUIRED" -> request("GET", "call/$callId", Purpose.Join(callId))
        else -> fail(callId, failure)
    }
}

/** The key that the answer to `join` had. */
internal fun Turn.onJoinedOpened(record: CallRecord, key: HeldKey) {
    val refusal = refusalOfSet(record.callId, key, record)
    if (refusal != null) onJoinedRefused(record, refusal) else done(record.callId) { enter(record, key) }
}

/** Another device may give the key in a way that can be verified. */
internal fun Turn.onJoinedRefused(record: CallRecord, failure: CallsignException) {
    report(record.callId, failure)
    done(record.callId) { ask(record) }
}

/** A key that came while this device was on its way in, or in. */
internal fun Turn.onUpdate(callId: String, event: JsonObject, command: Int) {
    val from = sealerOf(event)
    val epoch = event.needNumber("epoch")
    val call = call(callId)
    val latest = call?.latestKey
    val isEntering = call?.phase is Phase.Entering
    // Any member can send the present key again, or what they say is it.
    if (isEntering && latest != null && epoch <= latest.epoch) return settle(command)
    val isStranger = latest != null && !latest.isForSomeDeviceOf(from.userId)
    // On the way in without one, as the invitation's.
    val isOthers = latest == null && isEntering && from.userId != call.caller.userId
    val stranger = if (isStranger || isOthers) notFromMember(from) else null
    val refusal = refusalOfEpoch(callId, epoch) ?: stranger
    if (refusal != null) return onUpdateRefused(callId, command, epoch, refusal)
    // A person has come whom the record may not have yet.
    if (!event.text("added").isNullOrEmpty() || call?.record == null)
        return request("GET", "call/$callId", Purpose.KeyUpdateRead(callId, command, epoch, event))
    openUpdate(callId, event, command, call.record)
}

internal fun Turn.openUpdate(callId: String, event: JsonObject, command: Int, record: CallRecord?) {
    val epoch = event.needNumber("epoch")
    val reason = namedOrNull<KeysReason>(event.text("reason"))
    val purpose = Purpose.KeyUpdate(callId, command, epoch, reason, record)
    val hints = SetHints(setsIn(call(callId), record), changeIn(event))
    open(event.needText("encryptedAESKey"), listOf(sealerOf(event)), Use(callId, epoch), hints, purpose)
}

internal fun Turn.onUpdateRefused(callId: String, command: Int, epoch: Long, failure: CallsignException) {
    report(callId, failure)
    val call = call(callId)
    if (call == null || call.phase is Phase.Entering) return settle(command)
    // Any member can send what does not open: who has the key needs no other.
    val held = call.newestKey
    val hasIt = held != null && !held.isProvisional && epoch <= held.epoch
    if (hasIt && call.phase == Phase.Active) return settle(command)
    request("GET", "call/$callId", Purpose.KeylessRead(callId, command))
}

internal fun Turn.onUpdateOpened(update: Purpose.KeyUpdate, key: HeldKey) {
    val (callId, command, epoch, reason, record) = update
    val refusal = refusalOfSet(callId, key, record)
    if (refusal != null) return onUpdateRefused(callId, command, epoch, refusal)
    if (call(callId)?.isAsking == true) return takeGiven(callId, key, command)
    hold(callId, key, reason = reason)
    settle(command)
}

/** The device that is said to have sealed the key of a `key_update`. */
internal fun sealerOf(event: JsonObject) = Sender(event.needId("fromUserId"), event.needId("fromDeviceId"))

/** Two were answered at once: the server may let this device into the one that is not to go on. */
private fun Turn.giveUpEntering(callId: String) {
    for (one in device.calls) {
        val step = (one.phase as? Phase.Entering)?.step
        if (one.callId == callId || (step != EnteringStep.JOINING && step != EnteringStep.OPENING)) continue
        sendLeave(one.callId)
        close(one.callId, CallEnding.LEFT)
    }
}

/** Another one that this device is in. */
private fun Turn.otherThan(callId: String): DeviceCall? = device.calls.find { it.callId != callId && it.isIn }

/** Else it has ended, and may ring again. */
private fun Turn.isClearing(callId: String): Boolean =
    (call(callId)?.phase as? Phase.Entering)?.step == EnteringStep.CLEARING

private fun Turn.leaveFor(callId: String, other: String, known: DeviceCall?) {
    val operation = if (known?.phase == Phase.RingingOut) "end" else "leave"
    setStep(callId, EnteringStep.CLEARING)
    request("POST", "call/$other/$operation", Purpose.Clear(callId, other))
}

/** Settles the commands that wait for the call. */
private fun Turn.done(callId: String, goOn: () -> Unit) {
    val phase = call(callId)?.phase as? Phase.Entering ?: return
    goOn()
    settleAll(phase.commands, callId = callId)
}

private fun Turn.fail(callId: String, failure: CallsignException) {
    val phase = call(callId)?.phase as? Phase.Entering ?: return
    val (from, step, commands, rungOut) = phase
    val mayBeIn = from?.mayBeIn == true || (step == EnteringStep.JOINING && failure.isUnheard)
    change(callId) { copy(phase = phase.copy(commands = emptyList())) }
    if (from == null || rungOut != null) {
        if (mayBeIn) sendLeave(callId)
        close(callId, rungOut ?: CallEnding.UNKNOWN)
    } else if (failure.hasCode("CALL_ENDED", "CALL_NOT_ACTIVE")) {
        // The phone does not begin to ring once more until the reason comes.
        forget(callId)
        closeSoon(callId)
    } else {
        enterPhase(callId, Phase.RingingIn(from.copy(mayBeIn = mayBeIn)))
        if (!mayBeIn) forget(callId)
    }
    settleAll(commands, failure)
}

private fun Turn.setStep(callId: String, step: EnteringStep) {
    val phase = call(callId)?.phase
    if (phase is Phase.Entering) change(callId) { copy(phase = phase.copy(step = step)) }
}
