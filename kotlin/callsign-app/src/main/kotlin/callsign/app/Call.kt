/** A call as an app sees it: its state, its people, its key's fingerprint, and what can be done. */
package callsign.app

import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.StateFlow

public enum class CallState {
    /** It rings: here if it is incoming, else at the callees. */
    RINGING,

    /** This device has answered, and gets the key. */
    JOINING,
    ACTIVE,

    /** This device has no key, after a restart or a long loss of the network, and asks the devices in the call for it. */
    REJOINING,

    /** No device could give the key: the call goes on once its host makes a new one. */
    KEYLESS,
    ENDED,
}

/** Why a call has ended for this device. */
public enum class CallEnding {
    HANGUP,
    CANCELLED,
    DECLINED,
    UNANSWERED,
    CALLER_LOST,
    EMPTY,
    ALONE,
    LIMIT,
    REMOVED,

    /** The operator of the service has ended it, for all or for this user. */
    OPERATOR,

    /** The operator has suspended this user's account. */
    SUSPENDED,
    INTERNAL,

    /** The user has left it or signed out, or the app was closed. */
    LEFT,

    /** It goes on on another device of the user. */
    MOVED,
    ANSWERED_ELSEWHERE,
    DECLINED_ELSEWHERE,
    BUSY_ELSEWHERE,

    /** It rang without an answer. */
    MISSED,

    /** The app restarted while it rang at the callees, and the key was gone. */
    KEY_LOST,

    /** The call had ended before this device heard why. */
    UNKNOWN,
}

/** How a call is declined: with [TIMEOUT] it counts as missed. */
public enum class DeclineReason { DECLINED, BUSY, TIMEOUT }

/** A device asks for the key that is not the one its user is in the call with. Its ask is answered with [nonce]. */
public data class KeyAsk(
    public val userId: ULong,
    public val deviceId: ULong,
    public val displayName: String,
    public val publicKeyHash: String,
    public val nonce: String? = null,
) {
    internal val deviceName: String get() = "${userId}_$deviceId"
}

/**
 * A key of the call. [key] has 32 octets, wiped when the call ends here; [fingerprint] is thirty digits: the same on all devices
 * where key, call, epoch and the devices that it is sealed for are the same.
 */
public class EpochKey internal constructor(
    public val epoch: Long,
    public val key: ByteArray,
    public val fingerprint: String,
)

/** A device that a key was sealed for. */
public data class KeyDevice(public val userId: ULong, public val deviceId: ULong)

/** News of a call, in order. The members of [Call] have changed already. */
public sealed interface CallEvent {
    public data class StateChanged(public val state: CallState) : CallEvent

    /** There is a key, or a newer one. */
    public data class KeyChanged(
        public val epoch: Long,
        public val fingerprint: String,
        public val fromUserId: ULong,
    ) : CallEvent

    /** From now on [Call.sendingKey], the key of this epoch, seals frames. */
    public data class SendingChanged(public val epoch: Long) : CallEvent

    /** A person was invited, can't be reached, rings, joined, left or declined. */
    public data class ParticipantChanged(public val participant: CallParticipant) : CallEvent

    /** The gateway lets this device in, also again after it has lost its rooms. */
    public data class MediaReady(public val gateway: CallGateway) : CallEvent

    /** Show the person, who may answer by [Call.grantKey]. */
    public data class KeyAsked(public val ask: KeyAsk) : CallEvent

    /** So many events were dropped here, because the collector was too slow. The members of [Call] are as they are now. */
    public data class Missed(public val count: Int) : CallEvent

    /** The last one. */
    public data class Ended(public val ending: CallEnding) : CallEvent

    /** Something that the call does by itself has failed, such as a new key. */
    public data class Failed(public val error: CallsignException) : CallEvent
}

/** What becomes of a call to people with a device that nothing can be sealed for (`KEY_UNSUPPORTED`). */
public enum class Without {
    REFUSE,

    /** It goes on without them, where a person is left. The app hears of each by [KeyEvent.LeftOut]. */
    LEAVE_OUT,
}

/** Safe to use from any thread. An operation goes on to its end where its caller is cancelled. */
public interface Call {
    public val callId: String
    public val isIncoming: Boolean
    public val isVideo: Boolean

    /** Whether it had begun when this user was invited. */
    public val isOnGoing: Boolean

    /** The person who has invited this user; this user for an outgoing call. */
    public val caller: Person
    public val state: StateFlow<CallState>

    /** Whether the caller's devices and the key that they sent hold; null while that is checked. */
    public val isVerified: Boolean?
    public val participants: StateFlow<List<CallParticipant>>

    /** This user among them. */
    public val self: CallParticipant?
    public val hostUserId: ULong?
    public val isHost: Boolean

    /** The media gateway's room. */
    public val roomId: Long?

    /** The media gateway, and this device's admission. */
    public val media: CallGateway?

    /** When the first callee joined, by the server's clock. */
    public val startedAtMs: Long?

    /** The newest key; null before there is one, and once the call has ended. */
    public val key: StateFlow<EpochKey?>

    /** Those that open frames, newest first: the one before goes a few seconds after all have the new one. */
    public val keys: List<EpochKey>

    /** The one that frames are sealed with. */
    public val sendingKey: StateFlow<EpochKey?>

    /**
     * For the key provider of LiveKit's SDK, where that is the gateway: each key of each device, now and as they come and end. Ends with
     * the call.
     */
    public val liveKitKeys: Flow<LiveKitSlot>

    /** The one of [key]. */
    public val fingerprint: String? get() = key.value?.fingerprint

    /** Devices that the newest key was sealed for, this one among them; the fingerprint covers them. Empty without a key. */
    public val sealedFor: List<KeyDevice>

    /** Once the state is `ENDED`. */
    public val ending: CallEnding?

    /** Ends with [CallEvent.Ended]. A collector that falls more than 256 behind gets one [CallEvent.Missed] for those it missed. */
    public val events: Flow<CallEvent>

    /**
     * Answers, once the key is verified and opened; the call that this device is in is left for it. Throws `KEYS_REFUSED` when
     * the caller does not verify: it may be answered again. `CALLER_NOT_SEALER`: the key comes from another person than the
     * caller. `INVITATION_OLD`: it was sealed more than five minutes ago; ask the user, who may answer [evenIfOld].
     * `OWN_DEVICE_IN_SET`: ask the user whether `members.name` is a device of theirs, and see [acceptDevice].
     */
    public suspend fun answer(evenIfOld: Boolean = false)

    /** The user knows this device of theirs, `<userId>_<deviceId>`, which is on no list: keys may be sealed for it too. */
    public suspend fun acceptDevice(name: String)

    /** For all devices of the user. */
    public suspend fun decline(reason: DeclineReason = DeclineReason.DECLINED)

    /** Ends it for all: the host, either of two, the caller while it rings. Else it throws `NOT_HOST`. */
    public suspend fun end()

    /** The call goes on without this user. */
    public suspend fun leave()

    /** Brings contacts in, with a new key for all: it opens nothing of before. */
    public suspend fun invite(userIds: List<ULong>, without: Without = Without.REFUSE)

    /** The host's right. */
    public suspend fun remove(userId: ULong)

    /** A new key for all; the host makes one by itself in time and after a person has left. */
    public suspend fun renewKey()

    /** The present key once more for all, for a device that can't decrypt. */
    public suspend fun resendKey()

    /**
     * Frames are sealed with this epoch's key from now on: all other devices in the call were seen to have it, by a frame that came
     * from each. Else it is used five seconds after it came.
     */
    public suspend fun useKey(epoch: Long)

    /**
     * Asks the other devices for the present key, when frames of a member can't be opened with those that are here. The call goes
     * on meanwhile. Say by [userId] whose frames they are: it asks once for each member and key. The host does not ask, since the
     * host's key is the right one.
     */
    public suspend fun askForKey(userId: ULong? = null)

    /** Gives the key to a device that has asked for it. Throws unless it is on the list of its user. */
    public suspend fun grantKey(ask: KeyAsk)
}
