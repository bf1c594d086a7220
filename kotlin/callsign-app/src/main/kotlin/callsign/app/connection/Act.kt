package callsign.app.connection

import callsign.app.ConnectionState
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** Acts that the shell carries out for the connection of a device, in this order. */
internal sealed interface Act {
    /** Answers by [Input.Done] or [Input.Failed]. */
    sealed interface Asking : Act {
        val act: Int
    }

    /** A token that is good for a while. Its outcome has it. */
    data class Token(override val act: Int) : Asking

    /** Gets another token in the place of this one. */
    data class Renew(override val act: Int, val token: String) : Asking

    /** Registers the device of this session. */
    data class Register(override val act: Int) : Asking

    data class EndSession(val failure: Failure) : Act

    /** The server has named its time. */
    data class HearTime(val serverMs: Long) : Act

    /** Connects: [Input.Connected] or [Input.Closed] follow, about the socket with this number. */
    data class Open(val socket: Int, val token: String) : Act

    /** Sends a frame that asks for a RECEIPT, whose `recovered` the outcome has. */
    data class Request(
        override val act: Int,
        val socket: Int,
        val command: String,
        val headers: Map<String, String>,
        val body: String = "",
    ) : Asking

    /** Sends a frame that needs no answer. */
    data class Tell(val socket: Int, val command: String, val headers: Map<String, String>) : Act

    /** Ends the socket when the server has carried out all that was sent. Its outcome comes at the end. */
    data class Disconnect(override val act: Int, val socket: Int) : Asking

    /** Ends the socket at once: [Input.Closed] follows. */
    data class Abandon(val socket: Int) : Act

    /** Has the app handle an event: its outcome comes then. */
    data class Handle(override val act: Int, val event: JsonObject) : Asking

    /** Gives an event to a watch. */
    data class Topic(val watch: String, val event: JsonElement) : Act

    /** Answers the app. */
    data class Settle(val command: Int, val watch: String? = null, val error: Failure? = null) : Act

    data class State(val state: ConnectionState, val failures: Int) : Act

    /** All subscriptions are there. */
    data class Ready(val mayHaveMissed: Boolean) : Act

    data class Trouble(val failure: Failure) : Act
}
