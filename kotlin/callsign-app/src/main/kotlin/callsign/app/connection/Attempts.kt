package callsign.app.connection

import callsign.app.CallsignException.LocalCode

/** Attempts to connect: the token, the socket, what its close means, and the pause before the next one. */
internal object Attempts {
    private val FAULT_CODES = setOf(1002, 1007, 1008, 1009)
    private val OVER_REASONS = setOf("token_missing", "token_invalid", "session_revoked")

    /** A connection that lasted longer was a good one. */
    private const val STEADY_MS = 5_000L

    /** The bound of the first pause is two seconds; each failure doubles it. */
    private const val PAUSE_MS = 1_000L
    private const val PAUSE_MS_MAX = 60_000L
    private const val DOUBLINGS_MAX = 6

    /** A pause ends at once. */
    fun connect(step: Step) {
        val phase = step.phase
        if (phase is Phase.Off || phase is Phase.Elsewhere) askToken(step, failures = 0) else endPause(step)
    }

    /** Ends what there is; the caller ends the socket. */
    private fun stop(step: Step, phase: Phase) {
        for (watch in step.connection.watches) step.settle(watch.command, OFFLINE)
        step.connection = step.connection.copy(watches = emptyList())
        forgetMessages(step)
        step.enter(phase)
    }

    fun disconnect(step: Step, command: Int) {
        val socket = step.phase.openedOrNull?.socket
        stop(step, Phase.Off)
        if (socket == null) step.settle(command)
        else step.act(Act.Disconnect(step.wait(Purpose.Disconnect(command)), socket))
    }

    /** The session has ended. */
    fun endForGood(step: Step) {
        val socket = step.phase.openedOrNull?.socket
        stop(step, Phase.Off)
        if (socket != null) step.act(Act.Abandon(socket))
    }

    fun endPause(step: Step) {
        if (step.phase is Phase.Pausing) askToken(step)
    }

    fun onTime(step: Step) {
        val phase = step.phase
        if (phase is Phase.Pausing && phase.untilMs <= step.nowMs) askToken(step)
    }

    /** Takes the outcome of the present phase's act, and ignores one of an earlier phase. */
    fun onPhaseDone(step: Step, act: Int, token: String) {
        when (val phase = step.phase) {
            is Phase.Token -> if (phase.act == act) {
                val socket = step.number()
                step.enter(Phase.Opening(Opened(socket, token)))
                step.act(Act.Open(socket, token))
            }
            is Phase.Renewing -> if (phase.act == act) pause(step, phase.retryAfterMs)
            is Phase.Registering -> if (phase.act == act) pause(step, phase.retryAfterMs)
            else -> Unit
        }
    }

    fun onPhaseFailed(step: Step, act: Int, failure: Failure) {
        val (asked, retryAfterMs, failures) = when (val phase = step.phase) {
            is Phase.Token -> Triple(phase.act, 0L, failuresAfter(step))
            is Phase.Renewing -> Triple(phase.act, phase.retryAfterMs, step.connection.failures)
            is Phase.Registering -> Triple(phase.act, phase.retryAfterMs, step.connection.failures)
            else -> return
        }
        if (asked != act) return
        if (failure.code != LocalCode.NO_ANSWER) step.act(Act.Trouble(failure))
        pause(step, retryAfterMs, failures)
    }

    fun onConnected(step: Step, input: Input.Connected) {
        val opened = (step.phase as? Phase.Opening)?.opened ?: return
        val socket = input.socket
        if (opened.socket != socket) return
        if (input.serverMs > 0) step.act(Act.HearTime(input.serverMs))
        if (input.device != step.connection.deviceId) forgetDevice(step, input.device)
        val queues = step.connection.queues.map { queue ->
            val plain = mapOf("id" to queue.name, "destination" to "/user/queue/${queue.name}", "ack" to "client-individual")
            val position = queue.since?.let { mapOf("since" to it) }.orEmpty()
            step.request(socket, "SUBSCRIBE", plain + position, Purpose.Queue(socket))
        }
        val watches = step.connection.watches.map { Watches.subscribe(step, socket, it) }
        step.enter(Phase.Subscribing(Confirmed(opened, step.nowMs), queues + watches))
    }

    /** The server has a queue's subscription. */
    fun onQueueSubscribed(step: Step, act: Int, recovered: String?) = onSubscribed(step, act, listOf(recovered))

    /** The server has a watch, or has refused it. */
    fun onWatchAnswered(step: Step, act: Int) = onSubscribed(step, act, emptyList())

    private fun onSubscribed(step: Step, act: Int, recovered: List<String?>) {
        val phase = step.phase as? Phase.Subscribing ?: return
        if (act !in phase.left) return
        val left = phase.left - act
        val all = phase.recovered + recovered
        if (left.isNotEmpty()) return step.enter(phase.copy(left = left, recovered = all))
        step.enter(Phase.Connected(phase.confirmed))
        step.act(Act.Ready(mayHaveMissed = "true" !in all || "false" in all))
    }

    /** Where the connection broke, its close says more. */
    fun onQueueRefused(step: Step, socket: Int, failure: Failure) {
        if (failure.code != LocalCode.OFFLINE && socket == step.phase.openedOrNull?.socket) giveUp(step, socket, failure)
    }

    /** The server breaks the protocol, or refuses a queue. The close of the socket follows as an input. */
    fun giveUp(step: Step, socket: Int, failure: Failure) {
        step.act(Act.Trouble(failure))
        step.act(Act.Abandon(socket))
    }

    /** The meaning of a close: the table of docs/protocol/socket.md. */
    fun onClosed(step: Step, close: Input.Closed) {
        val opened = step.phase.openedOrNull ?: return
        if (opened.socket != close.socket) return
        val (_, code, reason, retryAfterMs, failure) = close
        if (code == 4409) return stop(step, Phase.Elsewhere)
        if (code == 4403 || (code == 4401 && reason in OVER_REASONS)) {
            val sentence = failure?.message ?: "The server has ended the session."
            val name = if (code == 4403) LocalCode.DEVICE_REMOVED else reason.uppercase()
            step.act(Act.EndSession(Failure(name, sentence)))
            return stop(step, Phase.Off)
        }
        forgetMessages(step)
        val failures = failuresAfter(step)
        if (code == 4401) return renew(step, opened.token, retryAfterMs, failures)
        if (reason == "device_not_registered") return register(step, retryAfterMs, failures)
        if (code in FAULT_CODES) step.act(Act.Trouble(failure ?: Failure(LocalCode.ANSWER_INVALID, reason)))
        pause(step, retryAfterMs, failures)
    }

    private fun renew(step: Step, token: String, retryAfterMs: Long, failures: Int) {
        val act = step.number()
        step.enter(Phase.Renewing(act, retryAfterMs), failures)
        step.act(Act.Renew(act, token))
    }

    private fun register(step: Step, retryAfterMs: Long, failures: Int) {
        val act = step.number()
        step.enter(Phase.Registering(act, retryAfterMs), failures)
        step.act(Act.Register(act))
    }

    private fun askToken(step: Step, failures: Int = step.connection.failures) {
        val act = step.number()
        step.enter(Phase.Token(act), failures)
        step.act(Act.Token(act))
    }

    /** Full jitter: devices that lost their connections together come back one by one. */
    private fun pause(step: Step, retryAfterMs: Long, failures: Int = step.connection.failures) {
        val boundMs = minOf(PAUSE_MS_MAX, PAUSE_MS shl minOf(failures, DOUBLINGS_MAX))
        val jitterMs = (step.random * boundMs).toLong()
        step.enter(Phase.Pausing(step.nowMs + maxOf(jitterMs, retryAfterMs)), failures)
    }

    private fun failuresAfter(step: Step): Int {
        val connectedAtMs = step.phase.confirmedOrNull?.connectedAtMs
        val isSteady = connectedAtMs != null && step.nowMs - connectedAtMs > STEADY_MS
        return if (isSteady) 1 else step.connection.failures + 1
    }

    /** Messages that no one has begun with come again on the next connection. */
    private fun forgetMessages(step: Step) {
        val queues = step.connection.queues.map { it.copy(waiting = emptyList()) }
        step.connection = step.connection.copy(queues = queues)
    }

    /** Another device has an inbox of its own. */
    private fun forgetDevice(step: Step, deviceId: String?) {
        val queues = step.connection.queues.map { it.copy(since = null) }
        step.connection = step.connection.copy(deviceId = deviceId, seen = emptyList(), queues = queues)
    }
}
