package callsign.app.connection

import callsign.app.CallsignException.LocalCode

/**
 * One step of a connection: an input comes in, and with the connection as it is then go the acts. [random] is from 0 up to 1,
 * which is not reached.
 */
internal class Step(var connection: DeviceConnection, val nowMs: Long, val random: Double) {
    private val begun = mutableListOf<Act>()
    val acts: List<Act> get() = begun
    val phase: Phase get() = connection.phase

    /** The app hears of another state, and of each attempt that failed. */
    fun enter(phase: Phase, failures: Int = connection.failures) {
        val before = connection
        connection = before.copy(phase = phase, failures = failures)
        if (phase.state != before.phase.state || failures != before.failures) act(Act.State(phase.state, failures))
    }

    fun act(act: Act) {
        begun += act
    }

    /** Sends a frame, whose outcome has the number that this returns. */
    fun request(
        socket: Int,
        command: String,
        headers: Map<String, String>,
        purpose: Purpose,
        body: String = "",
    ): Int {
        val act = wait(purpose)
        act(Act.Request(act, socket, command, headers, body))
        return act
    }

    fun settle(command: Int?, error: Failure? = null) {
        if (command != null) act(Act.Settle(command, error = error))
    }

    fun wait(purpose: Purpose): Int {
        val act = number()
        connection = connection.copy(waiting = connection.waiting + Waiting(act, purpose))
        return act
    }

    fun number(): Int {
        connection = connection.copy(count = connection.count + 1)
        return connection.count
    }
}

internal val OFFLINE = Failure(LocalCode.OFFLINE, "There is no connection to the server now.")
