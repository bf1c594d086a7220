/**
 * Decides the connection of one device, see docs/protocol/socket.md ("Connect"): an input, the time and a random number go in; the new
 * state and the acts to carry out come out. It is `src/app/connection/device-connection.ts` without the tabs of browsers, and
 * plays the same stories, `test/vectors/device-connection.jsonl`.
 */
package callsign.app.connection

internal class Decision(val connection: DeviceConnection, val acts: List<Act>)

/** [nowMs] never goes back; [random] is from 0 up to 1, which is not reached. */
internal fun decide(before: DeviceConnection, input: Input, nowMs: Long, random: Double): Decision {
    val step = Step(before, nowMs, random)
    onInput(step, input)
    return Decision(step.connection, step.acts)
}

/** When [Input.Time] is to be said, if nothing else comes; null where nothing is to happen by itself. */
internal fun nextDeadlineMs(connection: DeviceConnection): Long? =
    (connection.phase as? Phase.Pausing)?.untilMs ?: Queues.nextMessageMs(connection)

private fun onInput(step: Step, input: Input) {
    when (input) {
        is Input.Connect -> Attempts.connect(step)
        is Input.Disconnect -> Attempts.disconnect(step, input.command)
        is Input.Watch -> Watches.watch(step, input.command, input.destination)
        is Input.Unwatch -> Watches.unwatch(step, input.watch)
        is Input.Send -> send(step, input)
        is Input.Online -> Attempts.endPause(step)
        is Input.Over -> Attempts.endForGood(step)
        is Input.Connected -> Attempts.onConnected(step, input)
        is Input.Message -> Queues.onMessage(step, input)
        is Input.Closed -> Attempts.onClosed(step, input)
        is Input.Time -> {
            Attempts.onTime(step)
            Queues.onTime(step)
        }
        is Input.Done -> onOutcome(step, input.act, input, null)
        is Input.Failed -> onOutcome(step, input.act, null, input.failure)
    }
}

private fun send(step: Step, input: Input.Send) {
    val socket = step.phase.confirmedOrNull?.opened?.socket ?: return step.settle(input.command, OFFLINE)
    val headers = mapOf("destination" to input.destination)
    step.request(socket, "SEND", headers, Purpose.Send(input.command), input.body)
}

private fun onOutcome(step: Step, act: Int, done: Input.Done?, failure: Failure?) {
    val waiting = step.connection.waiting.find { it.act == act }
    if (waiting == null) {
        if (failure == null) Attempts.onPhaseDone(step, act, done?.token.orEmpty())
        else Attempts.onPhaseFailed(step, act, failure)
        return
    }
    step.connection = step.connection.copy(waiting = step.connection.waiting - waiting)
    when (val purpose = waiting.purpose) {
        is Purpose.Queue -> when (failure?.code) {
            null -> Attempts.onQueueSubscribed(step, act, done?.recovered)
            // Its user has not approved the device yet: the account's queue is enough to hear of that.
            "DEVICE_NOT_LISTED" -> Attempts.onWatchAnswered(step, act)
            else -> Attempts.onQueueRefused(step, purpose.socket, failure)
        }
        is Purpose.Watch -> {
            if (failure == null) Watches.onWatched(step, purpose.socket, purpose.id)
            else Watches.onRefused(step, purpose.id, failure)
            Attempts.onWatchAnswered(step, act)
        }
        is Purpose.Handle -> Queues.onHandled(step, purpose, failure)
        is Purpose.Ack -> if (failure == null) Queues.onAcknowledged(step, purpose)
        is Purpose.Send -> step.settle(purpose.command, failure)
        is Purpose.Disconnect -> step.settle(purpose.command, failure)
    }
}
