/** The end of a call for this device, and reports of failures. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallsignException
import callsign.app.hasCode

/** Ends it for this device, also where it is invited once more by what was sent before. */
internal fun Turn.close(callId: String, reason: CallEnding, isOver: Boolean = reason in OVER) {
    val call = call(callId) ?: return
    endHere(call, reason)
    noteEnd(callId, call.invitedAtMs)
    val key = call.latestKey
    if (key != null && isOver) noteOpened(callId, key.epoch, isOver = true)
    // Should it fail, the next start finds that the call has ended.
    forget(callId)
}

/** An invitation from before then does not ring any more. */
internal fun Turn.noteEnd(callId: String, invitedAtMs: Long) {
    // By this clock the invitation may not have been made yet.
    val atMs = maxOf(invitedAtMs, serverMs)
    val ended = device.ended.filter { it.callId != callId } + EndedCall(callId, atMs)
    device = device.copy(ended = ended.takeLast(ENDED_MAX))
}

/** The server may have let it in after it ended here. One that the next start asks for is left as it is. */
internal fun Turn.leaveUnknown(callId: String) {
    if (device.kept.callId != callId) sendLeave(callId)
}

/** Leaves it, whatever becomes of the request: the server hears of it at the latest with the next connection. */
internal fun Turn.sendLeave(callId: String, command: Int? = null) {
    val leaving = (device.kept.leaving - callId + callId).takeLast(LEAVING_MAX)
    keep(device.kept.copy(callId = device.kept.callId.takeIf { it != callId }, leaving = leaving))
    request("POST", "call/$callId/leave", Purpose.Leave(callId, command))
}

/** Rejects what waits for it. It may ring again, or be resumed. */
internal fun Turn.endHere(call: DeviceCall, reason: CallEnding) {
    enterPhase(call.callId, Phase.Ended(reason))
    if (call.topic != TopicState.OFF) act(Act.Unwatch(call.callId))
    settleAll(commandsOf(call), hasEndedHere())
}

/**
 * The queue says why it has ended, if it reaches this device; a moment later the call ends without a reason. A connection that
 * comes back meanwhile has as long.
 */
internal fun Turn.closeSoon(callId: String) =
    change(callId) { copy(end = EndState.Reason(nowMs + REASON_WAIT_MS, device.connection)) }

/** No reason came in time. */
internal fun Turn.onReasonDue(call: DeviceCall) {
    val end = call.end
    val isSame = end is EndState.Reason && end.connection != null && end.connection == device.connection
    if (isSame || end is EndState.Reconnection) return close(call.callId, CallEnding.UNKNOWN)
    change(call.callId) { copy(end = EndState.Reconnection(nowMs + RECONNECTION_WAIT_MS)) }
}

/** Tells the app of what a call does by itself and could not do. */
internal fun Turn.report(callId: String, failure: CallsignException) {
    if (call(callId) == null) return
    // The answer was faster than the message that says why.
    if (failure.hasCode("CALL_ENDED")) return closeSoon(callId)
    emit(callId, News.Failed(failure))
}

/** Whether it ended here after this time of an invitation; the server may not know yet. */
internal fun Turn.hasEnded(callId: String, invitedAtMs: Long): Boolean =
    device.ended.any { it.callId == callId && invitedAtMs <= it.atMs }

/** The next start does not ask for it, but for another one that this device is in. */
internal fun Turn.forget(callId: String) {
    if (device.kept.callId != callId) return
    val other = device.calls.find { it.callId != callId && it.isIn }
    keep(device.kept.copy(callId = other?.callId))
}

private fun commandsOf(call: DeviceCall): List<Int> =
    (call.phase as? Phase.Entering)?.commands.orEmpty() + (call.rotation as? Rotation.Renewing)?.commands.orEmpty()

internal fun hasEndedHere() = CallsignException("CALL_NOT_ACTIVE", "The call has ended here.")

/** For all: any other call may be come back to by the key that it has. */
private val OVER = setOf(
    CallEnding.HANGUP,
    CallEnding.CANCELLED,
    CallEnding.DECLINED,
    CallEnding.UNANSWERED,
    CallEnding.CALLER_LOST,
    CallEnding.EMPTY,
    CallEnding.ALONE,
    CallEnding.LIMIT,
)
private const val ENDED_MAX = 100
private const val LEAVING_MAX = 10
private const val REASON_WAIT_MS = 2_000L
private const val RECONNECTION_WAIT_MS = 30_000L
