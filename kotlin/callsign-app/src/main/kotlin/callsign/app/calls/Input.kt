/** Inputs to the calls of a device, by their origin. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallsignException
import callsign.app.DeclineReason
import callsign.app.KeyAsk
import kotlinx.serialization.json.JsonObject

internal sealed interface Input {
    /** `Settle` answers it once. */
    sealed interface Commanded : Input {
        val command: Int
    }

    /** A command of the app for one call. */
    sealed interface OfCall : Commanded {
        val callId: String
    }

    /** [callId] is made at random: no other call has it. */
    data class StartCall(
        override val command: Int,
        val callId: String,
        val userIds: List<ULong>,
        val options: StartOptions,
    ) : Commanded

    data class Join(override val command: Int, override val callId: String) : OfCall

    data class Answer(
        override val command: Int,
        override val callId: String,
        val evenIfOld: Boolean = false,
    ) : OfCall

    /** A device of the user's own, by its name. */
    data class AcceptDevice(override val command: Int, override val callId: String, val name: String) : OfCall

    data class Decline(override val command: Int, override val callId: String, val reason: DeclineReason) : OfCall

    data class End(override val command: Int, override val callId: String) : OfCall

    data class Leave(override val command: Int, override val callId: String) : OfCall

    data class SendInvite(override val command: Int, override val callId: String, val userIds: List<ULong>) : OfCall

    data class Remove(override val command: Int, override val callId: String, val userId: ULong) : OfCall

    data class Renew(override val command: Int, override val callId: String) : OfCall

    data class Resend(override val command: Int, override val callId: String) : OfCall

    /** All other devices in the call have the key of this epoch: it need not wait. */
    data class UseKey(override val command: Int, override val callId: String, val epoch: Long) : OfCall

    /** Frames of this member do not open, if one is named. */
    data class AskForKey(override val command: Int, override val callId: String, val userId: ULong?) : OfCall

    data class Grant(override val command: Int, override val callId: String, val ask: KeyAsk) : OfCall

    data class Close(val reason: CallEnding) : Input

    /** A push. */
    data class Invited(val invitation: Invitation) : Input

    data class Cancelled(val callId: String, val reason: CallEnding) : Input

    /** `Settle` says that the message may be acknowledged. */
    data class Queue(override val command: Int, val event: JsonObject) : Commanded

    data class Topic(val callId: String, val event: JsonObject) : Input

    /** The outcome of the act with this number. */
    sealed interface Outcome : Input {
        val act: Int
    }

    /**
     * A request gives its [body]; `Open` the [key] with its sender and set; `Seal` the [texts] by device with the set, or the one
     * [text]. It could not seal for the devices [without], which are in the call.
     */
    data class Done(
        override val act: Int,
        val body: JsonObject = JsonObject(emptyMap()),
        val key: Int? = null,
        val from: Sender? = null,
        val texts: JsonObject = JsonObject(emptyMap()),
        val text: String? = null,
        val set: KeySet = KeySet("", emptyList()),
        val without: List<String> = emptyList(),
        /** Names of the user's other devices that have the key and are on no list. */
        val unlisted: List<String> = emptyList(),
        /** How long ago the key was sealed, by this device's clock and its sender's. */
        val sealedAgoMs: Long = 0,
    ) : Outcome

    data class Failed(override val act: Int, val failure: CallsignException) : Outcome

    /** The time of `nextDeadlineMs` has come. */
    data object Time : Input

    /** First of all, where a call was kept before the app ended. */
    data class Restarted(val kept: Kept) : Input

    /** All subscriptions are there; once more after a failure. [kept] is what the last `Keep` noted, also before a restart. */
    data class Connected(override val command: Int, val connection: Long, val kept: Kept) : Commanded

    data object Disconnected : Input

    data class SetClock(val clock: Clock) : Input
}
