/** Acts that the shell carries out for the calls of a device. */
package callsign.app.calls

import callsign.app.CallGateway
import callsign.app.CallParticipant
import callsign.app.CallState
import callsign.app.CallsignException
import callsign.app.KeyAsk
import callsign.app.KeyBinding
import kotlinx.serialization.json.JsonObject

/** Carried out in this order. */
internal sealed interface Act {
    /** Answers by `Done` or `Failed`. */
    sealed interface Answered : Act {
        val act: Int
    }

    data class Request(override val act: Int, val method: String, val path: String, val body: JsonObject?) : Answered

    data class Send(val destination: String) : Act

    data class Watch(override val act: Int, val callId: String) : Answered

    data class Unwatch(val callId: String) : Act

    /** Tries the senders in turn, and says which it was. */
    data class Open(
        override val act: Int,
        val key: Int,
        val text: String,
        val from: List<Sender>,
        val binding: KeyBinding,
    ) : Answered

    data class Make(val key: Int) : Act

    data class Seal(
        override val act: Int,
        val key: Int,
        val receivers: Receivers,
        val binding: KeyBinding,
    ) : Answered

    /** Overwrites them. */
    data class Wipe(val keys: List<Int>) : Act

    /** Answers the app, or the queue: all that it asked for is done, or failed. */
    data class Settle(val command: Int, val callId: String?, val error: CallsignException?) : Act

    /** Notes for the next start which call this device is in. */
    data class Keep(val kept: Kept) : Act

    data class Emit(val callId: String, val news: News) : Act
}

internal sealed interface Receivers {
    data class Users(val userIds: List<ULong>) : Receivers

    /** Devices that are in the call, and all of those who may come. */
    data class Participants(val participants: List<CallParticipant>) : Receivers

    data class Asker(val ask: KeyAsk) : Receivers
}

internal sealed interface News {
    data object Ringing : News

    data object Resumed : News

    data class State(val state: CallState) : News

    data class Key(val key: HeldKey) : News

    data class Sending(val key: HeldKey) : News

    data class Participant(val participant: CallParticipant) : News

    data class Media(val gateway: CallGateway) : News

    data class KeyAsked(val ask: KeyAsk) : News

    data class Failed(val failure: CallsignException) : News
}
