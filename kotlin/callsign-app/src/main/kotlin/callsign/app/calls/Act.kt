/** Acts that the shell carries out for the calls of a device. */
package callsign.app.calls

import callsign.app.CallGateway
import callsign.app.CallParticipant
import callsign.app.CallState
import callsign.app.CallsignException
import callsign.app.KeyAsk
import callsign.app.SetHints
import kotlinx.serialization.json.JsonObject

/** Carried out in this order. */
internal sealed interface Act {
    /** Answers by `Done` or `Failed`. */
    sealed interface Answered : Act {
        val act: Int
    }

    /** The body is that of [nonce] where it has one: random octets that have this number. */
    data class Request(
        override val act: Int,
        val method: String,
        val path: String,
        val body: JsonObject?,
        val nonce: Int?,
    ) : Answered

    data class Send(val destination: String, val body: JsonObject = JsonObject(emptyMap())) : Act

    data class Watch(override val act: Int, val callId: String) : Answered

    data class Unwatch(val callId: String) : Act

    /** Tries the senders in turn, and says which it was. [nonce] is the number of the own one. */
    data class Open(
        override val act: Int,
        val key: Int,
        val text: String,
        val from: List<Sender>,
        val use: Use,
        val hints: SetHints,
        val nonce: Int?,
    ) : Answered

    data class Make(val key: Int) : Act

    /** With the asking device's [nonce], if it sent one. */
    data class Seal(
        override val act: Int,
        val key: Int,
        val receivers: Receivers,
        val use: Use,
        val nonce: String?,
    ) : Answered

    /** Overwrites them. */
    data class Wipe(val keys: List<Int>) : Act

    /** Answers the app, or the queue: all that it asked for is done, or failed. */
    data class Settle(val command: Int, val callId: String?, val error: CallsignException?) : Act

    /** Notes for the next start which call this device is in. */
    data class Keep(val kept: Kept) : Act

    data class Emit(val callId: String, val news: News) : Act
}

/** What a key is for. */
internal data class Use(val callId: String, val epoch: Long)

internal sealed interface Receivers {
    /** All devices of these users. */
    data class Users(val userIds: List<ULong>) : Receivers

    /** For a new key: the devices in the call, all of those who may come, and all of these users. */
    data class Participants(
        val participants: List<CallParticipant>,
        val userIds: List<ULong> = emptyList(),
    ) : Receivers

    /** For a held key: those of its set that are in the call. */
    data class Members(val participants: List<CallParticipant>, val keyMembers: String) : Receivers

    /** For a held key: one of its set. */
    data class Asker(val ask: KeyAsk, val keyMembers: String) : Receivers
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
