/** What a device knows of its calls, as `src/app/calls/device.ts` has it. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallGateway
import callsign.app.CallParticipant
import callsign.app.CallRecord
import callsign.app.CallState
import callsign.app.CallsignException
import callsign.app.KeyAsk
import callsign.app.ParticipantState
import callsign.app.Person
import callsign.app.SetChange
import callsign.app.hasCode
import kotlinx.serialization.json.JsonObject

internal data class Device(
    val userId: ULong,
    val deviceId: ULong,
    val calls: List<DeviceCall> = emptyList(),
    val starts: List<Start> = emptyList(),
    /** Calls that ended here, the oldest first: an invitation from before then does not ring again. */
    val ended: List<EndedCall> = emptyList(),
    /** Acts whose outcome is still to come. */
    val waiting: List<Waiting> = emptyList(),
    val restoring: Restoring = Restoring.Waiting(emptyList()),
    val clock: Clock = Clock(0, isKnown = false),
    /** A number for each connection; null without one. */
    val connection: Long? = null,
    /** Counts acts and keys. */
    val count: Int = 0,
    val kept: Kept = Kept(),
)

/** [aheadMs] is the server's time less the device's own, which runs evenly. [isKnown] says whether the server has named its time yet. */
internal data class Clock(val aheadMs: Long, val isKnown: Boolean)

internal data class EndedCall(val callId: String, val atMs: Long)

/** The call of before a restart: until it is there again, messages of unknown calls wait. */
internal sealed interface Restoring {
    data class Waiting(val early: List<Early>) : Restoring

    data object Restored : Restoring
}

internal data class Early(val command: Int, val event: JsonObject)

internal data class StartOptions(val isVideo: Boolean, val roomId: Long? = null)

/** A call that is being made: its keys are sealed, and the server is asked. */
internal data class Start(
    /** The app waits for it. */
    val command: Int,
    /** Chosen here: its key is bound to it. */
    val callId: String,
    val userIds: List<ULong>,
    val options: StartOptions,
    val key: Int,
    val triesLeft: Int,
    /** Once it is sealed. */
    val set: KeySet? = null,
    /** The app closed all calls meanwhile: this one ends as soon as it begins. */
    val closed: CallEnding? = null,
    /** The invitation of the only callee, which came while this was under way. */
    val held: Ringing? = null,
    /** They have turned out to call each other, and that call was over by then: it is started once more, once. */
    val isSecond: Boolean = false,
)

/** The tokens are for room [roomId]: the call may have another one by now. */
internal data class ReadyMedia(val roomId: Long?, val gateway: CallGateway)

internal data class DeviceCall(
    val callId: String,
    val isVideo: Boolean,
    val isOnGoing: Boolean,
    val isIncoming: Boolean,
    val caller: Person,
    /** The invitation's time by the server's clock; 0 without one. */
    val invitedAtMs: Long,
    val phase: Phase,
    val record: CallRecord?,
    /** From `media_ready`, which may come before the reply to `join` that does not have it yet. */
    val media: ReadyMedia? = null,
    /** Whether the caller and the key that they sent hold; null while that is checked. */
    val isVerified: Boolean? = null,
    val key: KeyState = KeyState(isAsked = false, held = emptyList()),
    val sending: Sending = Sending(0, emptyList(), emptyList()),
    /** Since when the newest key is here. */
    val heldAtMs: Long = 0,
    /** Members whose frames the newest key does not open, and another one was asked for. */
    val unopened: List<ULong> = emptyList(),
    /** Whom this device has removed: they are in no set that it makes or takes. */
    val removed: List<ULong> = emptyList(),
    /** Invitations of people whom it does not reach; each until the person's state changes. */
    val unreachable: List<Unreachable> = emptyList(),
    /** Devices in the call that a key of this device could not be sealed for: none is made for them alone. */
    val without: List<String> = emptyList(),
    /** Devices that have asked, and are to have the next key. */
    val admitted: List<Sender> = emptyList(),
    /** The number of the nonce of its open ask: answers to another one do not open. */
    val nonce: Int? = null,
    /** A key that another device than the host's has given. */
    val offer: Offer? = null,
    val topic: TopicState = TopicState.OFF,
    val rotation: Rotation = Rotation.None,
    val end: EndState = EndState.None,
    /** Version of the last `call_moved` that came while this device was on its way in; 0 before. */
    val movedVersion: Long = 0,
    /** Users who asked for the key while this device did not have it either. */
    val askers: List<ULong> = emptyList(),
)

internal data class Unreachable(val userId: ULong, val invitedAtMs: Long, val hasUnapprovedDevice: Boolean)

/** Taken at [atMs], unless the host gives one. */
internal data class Offer(val key: HeldKey, val atMs: Long)

internal enum class TopicState { OFF, COMING, ON }

internal sealed interface Phase {
    data class RingingIn(val rings: Rings) : Phase

    data object RingingOut : Phase

    data class Entering(
        /** Where it goes back to when it fails: it rings, or is gone. */
        val from: Rings?,
        val step: EnteringStep,
        val commands: List<Int>,
        /** Why it would have rung no more while it was answered here. */
        val rungOut: CallEnding? = null,
        /** The start that this call has crossed: it is made after all if this call has ended by now. */
        val crossed: Crossed? = null,
        /** The user wants it, however old its invitation is. */
        val evenIfOld: Boolean = false,
    ) : Phase

    data object Active : Phase

    /** This device has no key, and asks those who are in the call. */
    sealed interface Asking : Phase {
        val ask: Ask

        fun asking(ask: Ask): Asking
    }

    data class Rejoining(override val ask: Ask) : Asking {
        override fun asking(ask: Ask) = Rejoining(ask)
    }

    data class Keyless(override val ask: Ask) : Asking {
        override fun asking(ask: Ask) = Keyless(ask)
    }

    data class Ended(val reason: CallEnding) : Phase
}

/** The key is opened; other calls are left; the server is asked; the key that came with its answer is opened. */
internal enum class EnteringStep { KEY, CLEARING, JOINING, OPENING }

internal data class Crossed(val command: Int, val callId: String, val userIds: List<ULong>, val options: StartOptions)

internal data class Rings(
    val invited: Invited,
    val untilMs: Long,
    /** The answer to `join` was lost: the server may have this device in the call. */
    val mayBeIn: Boolean = false,
    /** It came by a push whose priority Firebase has lowered. */
    val wasLowered: Boolean = false,
)

/** A sealed key of an invitation: its text alone is none, since a server may name it for several epochs. */
internal data class InvitedKey(val epoch: Long, val text: String)

/** A key that came with an invitation, or for it. */
internal data class Invited(
    val epoch: Long,
    val text: String,
    /** The sender, if named; else the call's record names those in the call. */
    val from: Sender? = null,
    /** The one before, which it has to come from a device of. */
    val after: HeldKey? = null,
    /** How its set differs from that one's. */
    val change: SetChange? = null,
    val state: InvitedState = InvitedState.OPENING,
    /** Once it is opened. */
    val key: HeldKey? = null,
) {
    val named: InvitedKey get() = InvitedKey(epoch, text)
}

internal enum class InvitedState { OPENING, OPENED, REFUSED }

internal data class Sender(val userId: ULong, val deviceId: ULong) {
    val deviceName: String get() = "${userId}_$deviceId"
}

/**
 * The shell knows the octets by the number [key]: equal octets have the same number. A provisional one is not the host's, who may
 * replace it.
 */
internal data class HeldKey(
    val epoch: Long,
    val key: Int,
    val fromUserId: ULong,
    val set: KeySet,
    val isProvisional: Boolean = false,
    /** Names of the user's other devices that have it and are on no list. */
    val unlisted: List<String> = emptyList(),
)

/** The devices that a key is sealed for: the set as it travels, and their names, `<userId>_<deviceId>`. */
internal data class KeySet(val keyMembers: String, val members: List<String>)

/** [isAsked]: another one is wanted, though this device has one. [held]: the newest first; none before the first. */
internal data class KeyState(val isAsked: Boolean, val held: List<HeldKey>)

/** Frames are sealed with the key of [epoch], 0 before the first. Newer ones are taken when [uses] say, older ones go when [drops] say. */
internal data class Sending(val epoch: Long, val uses: List<Due>, val drops: List<Due>)

internal data class Due(val epoch: Long, val atMs: Long)

/** While this device has no key. */
internal sealed interface Ask {
    /** The request is under way. */
    data object Asking : Ask

    /** Those in the call were asked. */
    data class Asked(val untilMs: Long) : Ask

    /** It asks again then. */
    data class Pausing(val untilMs: Long) : Ask

    /** It returns with a key: another one as the host, or one that it was given. */
    data object Returning : Ask
}

internal sealed interface Rotation {
    data object None : Rotation

    data class Planned(val atMs: Long, val afterMs: Long, val reason: KeysReason) : Rotation

    data class Renewing(
        val reason: KeysReason,
        /** The time after which it was planned; null if the app asked for it. */
        val afterMs: Long?,
        val commands: List<Int>,
        /** It comes back into the call with this key. */
        val returning: CallRecord? = null,
        /** Planned meanwhile. */
        val next: Planning? = null,
    ) : Rotation
}

internal data class Planning(val afterMs: Long, val reason: KeysReason)

internal enum class KeysReason { ROTATION, LEAVE, EMERGENCY, INVITE }

/** Whether the call has ended at the server, and the reason may come yet. */
internal sealed interface EndState {
    data object None : EndState

    data class Reason(val atMs: Long, val connection: Long?) : EndState

    /** The connection was another one, or none: the reason comes with the next one. */
    data class Reconnection(val atMs: Long) : EndState
}

/** An invitation, from wherever it came. [invitedAtMs] is by the server's clock, [untilMs] by this device's. */
internal data class Ringing(
    val callId: String,
    val isVideo: Boolean,
    val isOnGoing: Boolean,
    val caller: Person,
    val text: String,
    val epoch: Long,
    /** The device that has sealed its key, as the server says. */
    val from: Sender?,
    val invitedAtMs: Long,
    val untilMs: Long,
    val wasLowered: Boolean = false,
)

/**
 * Noted for the next start: the call that it is in; those that it has left, and the server may not have heard; and calls whose key
 * this device has had, the one that was last in use at the end.
 */
internal data class Kept(
    val callId: String? = null,
    val leaving: List<String> = emptyList(),
    val opened: List<Opened> = emptyList(),
    /** Names of the user's devices that are on no list, and whose having keys the user has accepted. */
    val accepted: List<String> = emptyList(),
)

/**
 * The newest [epoch] of a call. After a restart no older one is taken, and once the call has ended neither is this one. This device
 * has removed the users [removed].
 */
internal data class Opened(
    val callId: String,
    val epoch: Long,
    val isOver: Boolean = false,
    val removed: List<ULong> = emptyList(),
)

/** An act whose outcome comes as an input with the same number, and what it is for. */
internal data class Waiting(val act: Int, val purpose: Purpose)

internal sealed interface Purpose {
    /** Of the call that it is about. */
    val callId: String? get() = null
    val command: Int? get() = null

    data class StartSeal(override val command: Int) : Purpose

    data class StartCall(override val command: Int) : Purpose

    data class CrossedPending(
        override val command: Int,
        override val callId: String,
        val failure: CallsignException,
    ) : Purpose

    data class CrossedOpen(
        override val command: Int,
        val ringing: Ringing,
        val record: CallRecord,
        val failure: CallsignException,
    ) : Purpose

    /** It is settled by whatever comes of it; a refusal with the code [unless] is no failure. */
    data class Command(
        override val callId: String,
        override val command: Int?,
        val unless: String? = null,
    ) : Purpose

    data class Leave(override val callId: String, override val command: Int?) : Purpose

    data class End(override val callId: String, override val command: Int) : Purpose

    data class JoinFind(override val callId: String, override val command: Int) : Purpose

    data class InvitedRead(override val callId: String, val key: InvitedKey) : Purpose

    data class InvitedOpen(override val callId: String, val key: InvitedKey, val record: CallRecord) : Purpose

    data class Clear(override val callId: String, val other: String) : Purpose

    data class Join(override val callId: String) : Purpose

    data class JoinedOpen(override val callId: String, val record: CallRecord) : Purpose

    data class KeptLeave(override val callId: String, override val command: Int, val kept: Kept) : Purpose

    data class Pending(override val command: Int, val kept: Kept) : Purpose

    data class Restore(override val callId: String, override val command: Int?) : OfConnection {
        override fun withoutCommand() = copy(command = null)
    }

    data class GiveUp(override val callId: String, override val command: Int?) : OfConnection {
        override fun withoutCommand() = copy(command = null)
    }

    /** [again]: so often the answer was older than the topic, in a row. */
    data class Refresh(override val callId: String, override val command: Int?, val again: Int) : OfConnection {
        override fun withoutCommand() = copy(command = null)
    }

    data class Watch(override val callId: String) : Purpose

    data class KeyUpdateRead(
        override val callId: String,
        override val command: Int,
        val epoch: Long,
        val event: JsonObject,
    ) : Purpose

    data class KeyUpdate(
        override val callId: String,
        override val command: Int,
        val epoch: Long,
        val reason: KeysReason?,
        /** The newest there is. */
        val record: CallRecord?,
    ) : Purpose

    data class KeylessRead(override val callId: String, override val command: Int?) : Purpose

    data class SendAsk(override val callId: String) : Purpose

    data class Return(override val callId: String) : Purpose

    data class AskBeside(override val callId: String, override val command: Int?) : Purpose

    /** [isKnown]: they were removed here before, and the server does not undo that. */
    data class Remove(
        override val callId: String,
        override val command: Int?,
        val userId: ULong,
        val isKnown: Boolean,
    ) : Purpose

    data class GrantedOpen(override val callId: String, override val command: Int, val epoch: Long) : Purpose

    data class ComeBack(override val callId: String, override val command: Int?, val key: HeldKey) : Purpose

    data class AskedRead(override val callId: String, override val command: Int, val ask: KeyAsk) : Purpose

    data class GrantSeal(
        override val callId: String,
        override val command: Int,
        val ask: KeyAsk,
        val epoch: Long,
    ) : Purpose

    data class KeysRead(val sending: NewKey) : OfNewKey(sending)

    data class KeysSeal(val sending: NewKey) : OfNewKey(sending)

    data class Keys(val sending: NewKey) : OfNewKey(sending)

    data class InviteRead(val invite: Invite) : OfInvite(invite)

    data class InviteSeal(val invite: Invite) : OfInvite(invite)

    data class SendInvite(val invite: Invite) : OfInvite(invite)

    /** Its command, if it has one, is that of a connection. */
    sealed interface OfConnection : Purpose {
        fun withoutCommand(): Purpose
    }

    sealed class OfNewKey(private val newKey: NewKey) : Purpose {
        override val callId get() = newKey.callId
        override val command get() = newKey.command

        /** One that is sent once more is wiped with its call. */
        val ownKey get() = newKey.key.takeUnless { newKey.reason == KeysReason.EMERGENCY }
    }

    sealed class OfInvite(invite: Invite) : Purpose {
        override val callId = invite.callId
        override val command = invite.command
        val ownKey = invite.key
    }
}

/** A key on its way to all in the call; without a command it is the rotation's. */
internal data class NewKey(
    val callId: String,
    val reason: KeysReason,
    val command: Int?,
    val triesLeft: Int,
    val key: Int? = null,
    /** The key's own, whatever this device holds by the time that it is sealed. */
    val epoch: Long? = null,
    val record: CallRecord? = null,
    /** Once it is sealed. */
    val set: KeySet? = null,
    val without: List<String> = emptyList(),
)

internal data class Invite(
    val callId: String,
    val command: Int,
    val userIds: List<ULong>,
    val triesLeft: Int,
    /** The new key's, once there is one. */
    val key: Int? = null,
    val epoch: Long? = null,
    val set: KeySet? = null,
)

internal fun unreachableIn(call: DeviceCall, person: CallParticipant): Unreachable? = call.unreachable
    .takeIf { person.state == ParticipantState.INVITED }
    ?.find { it.userId == person.userId && it.invitedAtMs == person.invitedAtMs }

internal fun CallParticipant.reachedAs(unreachable: Unreachable?): CallParticipant =
    copy(isUnreachable = unreachable != null, hasUnapprovedDevice = unreachable?.hasUnapprovedDevice == true)

/** The state that an app sees. */
internal fun stateOf(phase: Phase): CallState = when (phase) {
    is Phase.RingingIn, Phase.RingingOut -> CallState.RINGING
    is Phase.Entering -> CallState.JOINING
    Phase.Active -> CallState.ACTIVE
    is Phase.Rejoining -> CallState.REJOINING
    is Phase.Keyless -> CallState.KEYLESS
    is Phase.Ended -> CallState.ENDED
}

/** Whether this device takes part, or wants to. */
internal val DeviceCall.isPresent: Boolean get() = phase !is Phase.Ended && phase !is Phase.RingingIn

/** Whether it takes part; else it is on its way in, or does not. */
internal val DeviceCall.isIn: Boolean get() = isPresent && phase !is Phase.Entering

/** Whether this device has no key, and asks for it. */
internal val DeviceCall.isAsking: Boolean get() = phase is Phase.Asking

internal val DeviceCall.newestKey: HeldKey? get() = key.held.firstOrNull()

/** The key that came with the invitation, until this device is in. */
internal val DeviceCall.invited: Invited? get() = when (phase) {
    is Phase.RingingIn -> phase.rings.invited
    is Phase.Entering -> phase.from?.invited
    else -> null
}

/** Keys that are held, or will be: by an invitation, a start, or an act whose outcome is still to come. */
internal fun keysIn(device: Device): List<Int> {
    val ofCalls = device.calls.filter { it.phase !is Phase.Ended }
        .flatMap { it.key.held + listOfNotNull(it.invited?.key, it.offer?.key) }
        .map { it.key }
    val ofActs = device.waiting.mapNotNull { (_, purpose) ->
        when (purpose) {
            is Purpose.OfNewKey -> purpose.ownKey
            is Purpose.OfInvite -> purpose.ownKey
            is Purpose.ComeBack -> purpose.key.key
            else -> null
        }
    }
    return ofCalls + ofActs + device.starts.map { it.key }
}

/** Whether the server may not have heard the request, or could not carry it out. */
internal val CallsignException.isUnheard: Boolean get() = hasCode("OFFLINE", "NO_ANSWER", "ANSWER_INVALID", "SIGNED_OUT")

/** Whether this device has no part in the call any more. */
internal val CallsignException.isGone: Boolean get() = hasCode("CALL_ENDED", "CALL_NOT_FOUND", "NOT_PARTICIPANT")

/** Whether a user's devices, or the epoch of the call, have changed meanwhile. */
internal val CallsignException.isChanged: Boolean get() = hasCode("DEVICE_LIST_MISMATCH", "EPOCH_CONFLICT")

internal const val TRIES = 3
