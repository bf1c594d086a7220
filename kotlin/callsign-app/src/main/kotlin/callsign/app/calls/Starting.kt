/** A call that this device starts, also one that the callee has started at the same instant. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.SetHints
import callsign.app.answerInvalid
import callsign.app.hasCode
import callsign.app.idsOf
import callsign.app.text
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** Nothing rings unless every device of every callee verifies. */
internal fun Turn.startCall(input: Input.StartCall) =
    sealStart(Crossed(input.command, input.callId, input.userIds, input.options))

/** An invitation from the one person who is being called is held until it is known which of the two calls goes on. */
internal fun Turn.holds(ringing: Ringing): Boolean {
    val own = device.starts.find { it.userIds.singleOrNull() == ringing.caller.userId && it.closed == null }
    if (own == null || call(ringing.callId) != null) return false
    replace(own.copy(held = ringing))
    return true
}

/** A held invitation rings no more: it was withdrawn, or another device of the user has answered. */
internal fun Turn.dropHeld(callId: String) {
    val own = device.starts.find { it.held?.callId == callId } ?: return
    noteEnd(callId, checkNotNull(own.held).invitedAtMs)
    replace(own.copy(held = null))
}

internal fun Turn.onStartSealed(command: Int, texts: JsonObject, set: KeySet) {
    val own = find(command) ?: return
    if (own.closed != null) {
        take(command)
        return giveUp(own, hasEndedHere())
    }
    replace(own.copy(set = set))
    val body = buildJsonObject {
        put("callId", JsonPrimitive(own.callId))
        put("calleeIds", idsOf(own.userIds))
        put("keyMembers", JsonPrimitive(set.keyMembers))
        put("encryptedAESKeys", texts)
        put("isVideo", JsonPrimitive(own.options.isVideo))
        own.options.roomId?.let { put("roomId", JsonPrimitive(it)) }
    }
    request("POST", "call/start", Purpose.StartCall(command), body)
}

internal fun Turn.onStarted(command: Int, record: CallRecord) {
    val own = take(command) ?: return
    val callId = record.callId
    // Its key is bound to the id that this device has chosen.
    if (callId != own.callId) return giveUp(own, answerInvalid())
    // It was joined by its id, and left, before this answer came.
    val isOver = device.ended.any { it.callId == callId }
    val known = call(callId)
    if (isOver && known != null) return giveUp(own, hasEndedHere())
    // Where it is known, the user is on the way back into it.
    val closed = if (known != null) null else own.closed ?: CallEnding.LEFT.takeIf { isOver }
    // The app has joined it already, by an id that it has from elsewhere.
    (known?.phase as? Phase.Entering)?.let { settleAll(it.commands, callId = callId) }
    if (known == null) add(record, record.person(device.userId), Phase.RingingOut)
    for (other in device.calls.filter { it.callId != callId && it.isAsking }) {
        sendLeave(other.callId)
        close(other.callId, CallEnding.LEFT)
    }
    if (closed == null) {
        enter(record, HeldKey(FIRST_EPOCH, own.key, device.userId, checkNotNull(own.set)))
    } else {
        close(callId, closed)
        request("POST", "call/$callId/end", Purpose.GiveUp(callId, null))
    }
    settle(command, callId = callId)
    own.held?.let(::ring)
}

internal fun Turn.onNotStarted(command: Int, failure: CallsignException) {
    val own = take(command) ?: return
    if (own.closed == null && failure.isChanged && own.triesLeft > 1)
        return sealStart(own.begun, own.triesLeft - 1, own.isSecond, own.held)
    if (failure.hasCode("CALL_CROSSED") && own.userIds.size == 1 && own.closed == null) {
        device = device.copy(starts = device.starts + own)
        val purpose = Purpose.CrossedPending(command, failure.members.text("callId").orEmpty(), failure)
        return request("GET", "call/pending", purpose)
    }
    giveUp(own, failure)
}

/** The callee's call is the one call: it is joined unasked if its key comes from that very person, and it is of these two. */
internal fun Turn.onCrossed(command: Int, callId: String, items: List<CallRecord>, failure: CallsignException) {
    val own = find(command) ?: return
    val record = items.find { it.callId == callId } ?: return onCrossedCallOver(own, failure)
    val ringing = ringingIn(record)
    val senders = sendersIn(record).filter { it.userId == own.userIds.first() }
    if (record.participants.size != 2 || senders.isEmpty() || own.closed != null) return onNotTheirs(own, ringing, failure)
    // This device was registered since it began to ring: it has no key of it, and asks for one.
    if (ringing == null) {
        take(command)
        return onFound(record, command)
    }
    val epoch = ringing.epoch
    refusalOfEpoch(callId, epoch)?.let { return onNotTheirs(own, ringing, it) }
    val purpose = Purpose.CrossedOpen(command, ringing, record, failure)
    open(ringing.text, senders, Use(callId, epoch), SetHints(setsIn(null, record)), purpose)
}

internal fun Turn.onCrossedOpened(crossed: Purpose.CrossedOpen, key: HeldKey) {
    val (command, ringing, record) = crossed
    val callId = ringing.callId
    refusalOfSet(callId, key, record)?.let { return onCrossedRefused(command, ringing, it) }
    val own = take(command) ?: return
    val invited = Invited(ringing.epoch, ringing.text, state = InvitedState.OPENED, key = key)
    val from = Rings(invited, ringing.untilMs)
    val begun = own.begun.takeUnless { own.isSecond }
    val phase = Phase.Entering(from, EnteringStep.CLEARING, listOf(command), crossed = begun)
    val known = call(callId)
    when {
        known == null -> add(ringing, phase)
        known.phase is Phase.RingingIn -> enterPhase(callId, phase)
        else -> return settle(command, callId = callId)
    }
    change(callId) { copy(isVerified = true) }
    clear(callId)
}

internal fun Turn.onCrossedRefused(command: Int, ringing: Ringing, failure: CallsignException) {
    find(command)?.let { onNotTheirs(it, ringing, failure) }
}

/** Whether the call that ended was to be joined in place of a start: that is made once more. */
internal fun Turn.startsAgain(callId: String): Boolean {
    val phase = call(callId)?.phase as? Phase.Entering
    val crossed = phase?.crossed ?: return false
    change(callId) { copy(phase = phase.copy(commands = phase.commands - crossed.command)) }
    close(callId, CallEnding.UNKNOWN)
    sealStart(crossed, isSecond = true)
    return true
}

/** The app is closed, or another installation goes on. */
internal fun Turn.closeStarts(reason: CallEnding) {
    device = device.copy(starts = device.starts.map { it.copy(closed = reason) })
}

/** It was over by then: it is started once more, once. */
private fun Turn.onCrossedCallOver(own: Start, failure: CallsignException) {
    take(own.command)
    if (own.isSecond || own.closed != null) return giveUp(own, failure)
    sealStart(own.begun, isSecond = true)
}

private fun Turn.onNotTheirs(own: Start, held: Ringing?, failure: CallsignException) {
    take(own.command)
    giveUp(if (held == null) own else own.copy(held = held), failure)
}

private fun Turn.giveUp(own: Start, failure: CallsignException) {
    // The server may have begun it.
    if (failure.isUnheard) sendLeave(own.callId)
    settle(own.command, failure)
    if (own.closed == null) own.held?.let(::ring)
}

/** With a fresh key for each try. */
private fun Turn.sealStart(
    begun: Crossed,
    triesLeft: Int = TRIES,
    isSecond: Boolean = false,
    held: Ringing? = null,
) {
    val (command, callId, userIds, options) = begun
    val key = makeKey()
    val start = Start(command, callId, userIds, options, key, triesLeft, held = held, isSecond = isSecond)
    device = device.copy(starts = device.starts + start)
    seal(key, Receivers.Users(userIds), Use(callId, FIRST_EPOCH), Purpose.StartSeal(command))
}

private val Start.begun get() = Crossed(command, callId, userIds, options)

private fun Turn.find(command: Int): Start? = device.starts.find { it.command == command }

private fun Turn.take(command: Int): Start? {
    val own = find(command)
    device = device.copy(starts = device.starts.filter { it !== own })
    return own
}

private fun Turn.replace(start: Start) {
    device = device.copy(starts = device.starts.map { if (it.command == start.command) start else it })
}

private const val FIRST_EPOCH = 1L
