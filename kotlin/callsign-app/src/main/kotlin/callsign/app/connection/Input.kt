package callsign.app.connection

import kotlinx.serialization.json.JsonElement

/** Inputs to the connection of a device, by their origin. */
internal sealed interface Input {
    /** The app. An [Act.Settle] answers each command once. */
    data object Connect : Input

    data class Disconnect(val command: Int) : Input

    data class Watch(val command: Int, val destination: String) : Input

    data class Unwatch(val watch: String) : Input

    data class Send(val command: Int, val destination: String, val body: String) : Input

    /** The platform says that there is a network. */
    data object Online : Input

    /** The session has ended. */
    data object Over : Input

    /** CONNECTED. [serverMs]: the server's time; 0 where it names none. */
    data class Connected(val socket: Int, val device: String?, val serverMs: Long) : Input

    /** A MESSAGE, with the JSON of its body. */
    data class Message(val socket: Int, val subscription: String, val ack: String?, val event: JsonElement) : Input

    /** How a socket has ended: codes and reasons are those of docs/protocol/socket.md ("Connect"). */
    data class Closed(
        val socket: Int,
        val code: Int,
        val reason: String,
        val retryAfterMs: Long,
        val failure: Failure? = null,
    ) : Input

    /** The outcome of the act with this number. */
    data class Done(val act: Int, val token: String? = null, val recovered: String? = null) : Input

    data class Failed(val act: Int, val failure: Failure) : Input

    /** The time of [nextDeadlineMs] has come. */
    data object Time : Input
}
