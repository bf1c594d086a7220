/**
 * Decides the calls of one device, as `src/app/calls/device-call.ts` does: an input (`Input.kt`) and the time go in; the device's
 * new state (`Device.kt`) and the acts to carry out (`Act.kt`) come out. Both play the same stories
 * (test/vectors/device-calls.jsonl). The shell carries out the acts in their order, gives each outcome back as an input, and says
 * `Time` at [nextDeadlineMs].
 */
package callsign.app.calls

internal data class Decision(val device: Device, val acts: List<Act>)

/** Throws `ANSWER_INVALID` where the server tells nonsense. */
internal fun decide(before: Device, input: Input, nowMs: Long): Decision {
    val turn = Turn(before.copy(calls = before.calls.filter { it.phase !is Phase.Ended }), nowMs)
    turn.onInput(input)
    turn.wipeUnused(keysIn(before) + listOfNotNull((input as? Input.Done)?.key))
    return Decision(turn.device, turn.acts)
}

/** When `Time` is to be said, if nothing else comes; null where nothing is to happen by itself. */
internal fun nextDeadlineMs(device: Device): Long? = device.calls.flatMap(::deadlinesOf).minOfOrNull { it.atMs }

private class Deadline(val atMs: Long, val run: Turn.() -> Unit)

private fun Turn.onInput(input: Input): Unit = when (input) {
    is Input.StartCall -> startCall(input)
    is Input.Close -> {
        closeStarts(input.reason)
        // They may ring again, or be come back to.
        for (call in device.calls) endHere(call, input.reason)
    }
    is Input.Invited -> onInvitation(input.invitation)
    is Input.Cancelled -> {
        dropHeld(input.callId)
        if (call(input.callId)?.phase is Phase.RingingIn) close(input.callId, input.reason) else Unit
    }
    is Input.Queue -> onQueue(input.event, input.command)
    is Input.Topic -> onTopic(input.callId, input.event)
    is Input.Outcome -> onOutcome(input)
    Input.Time -> onTime()
    is Input.Restarted -> device = device.copy(kept = input.kept)
    is Input.Connected -> onConnected(input)
    Input.Disconnected -> device = device.copy(connection = null)
    is Input.SetClock -> device = device.copy(clock = input.clock)
    is Input.Join -> join(input.callId, input.command)
    is Input.OfCall -> onCommand(input)
}

private fun Turn.onTime() {
    for (call in device.calls)
        for (deadline in deadlinesOf(call)) if (deadline.atMs <= nowMs) deadline.run(this)
}

private fun deadlinesOf(call: DeviceCall): List<Deadline> {
    val callId = call.callId
    val phase = call.phase
    val all = ArrayList<Deadline>()
    when (phase) {
        is Phase.Ended -> return all
        is Phase.RingingIn -> all += Deadline(phase.rings.untilMs) { onRingDue(callId) }
        is Phase.Asking -> when (val ask = phase.ask) {
            is Ask.Asked -> all += Deadline(ask.untilMs) { onNobodyGrants(callId) }
            is Ask.Pausing -> all += Deadline(ask.untilMs) { askAgain(callId) }
            Ask.Asking, Ask.Returning -> Unit
        }
        else -> Unit
    }
    (call.rotation as? Rotation.Planned)?.let { all += Deadline(it.atMs) { onRotationDue(callId) } }
    for (due in call.sending.uses) all += Deadline(due.atMs) { use(callId, due.epoch) }
    for (due in call.sending.drops) all += Deadline(due.atMs) { drop(callId, due.epoch) }
    call.offer?.let { all += Deadline(it.atMs) { onOfferDue(callId) } }
    // While it asks for another key, it sends with this one.
    val isInUse = phase == Phase.Active || (call.isAsking && call.sending.epoch > 0)
    if (isInUse && call.key.held.isNotEmpty()) all += Deadline(call.outdatedAtMs) { onOutdated(callId) }
    when (val end = call.end) {
        EndState.None -> Unit
        is EndState.Reason -> all += Deadline(end.atMs) { onReasonDue(call) }
        is EndState.Reconnection -> all += Deadline(end.atMs) { onReasonDue(call) }
    }
    return all
}
