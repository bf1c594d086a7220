package callsign.app

import java.security.GeneralSecurityException
import java.security.MessageDigest
import java.security.SecureRandom
import java.util.BitSet

/** Why a frame was not opened. [wireName] is the name that `@callsign/sdk/app` has. */
public enum class FrameFailure(public val wireName: String) {
    /** It was sealed with the key of an epoch that is not held here. */
    NO_KEY("no-key"),

    /** It was sealed with another key, or changed on the way. */
    NOT_AUTHENTIC("not-authentic"),

    /** It came before, is older than the window, or has a key that its sender had left for a newer one. */
    REPLAYED("replayed"),

    /** It was sealed here. */
    REFLECTED("reflected"),
    MALFORMED("malformed"),

    /** More senders than a call can have in one epoch. */
    TOO_MANY_SENDERS("too-many-senders"),
}

/** The result of [FrameCryptor.open]. */
public sealed interface FrameOutcome

/**
 * The encoder's frame, sealed with the key of [epoch]. Where it [fillsEpoch], its sender is the last whose frames that key opens: the
 * call needs the next one.
 */
public class OpenedFrame internal constructor(
    public val frame: ByteArray,
    public val epoch: Int,
    public val fillsEpoch: Boolean,
) : FrameOutcome

/** Drop the frame. */
public class UnopenedFrame internal constructor(public val reason: FrameFailure) : FrameOutcome

/**
 * Seals this app's frames of a call and opens the other members' with the call's keys (docs/protocol/media-frames.md). All state is
 * bounded, and none is made by a frame that is not authentic. Safe to share between threads; one for each run of the app and call.
 */
public class FrameCryptor internal constructor(private val callId: String, private val monotonicMs: () -> Long) {
    public constructor(callId: String) : this(callId, { System.nanoTime() / 1_000_000 })

    /** Its first frame of the epoch was opened at [sinceMs]. */
    private class Sender(val key: SFrameKey, val sinceMs: Long) {
        val window = ReplayWindow()
    }

    private class Epoch(val key: ByteArray, val baseKey: ByteArray) {
        /** By KID. Only an authentic frame adds one. */
        val senders = HashMap<ULong, Sender>()
    }

    private class Sending(val epoch: Int, val kid: ULong, val key: SFrameKey)

    private val epochs = HashMap<Int, Epoch>()

    /**
     * All members seal with one call key. A KID of its own for each run gives each an SFrame key of its own, so that no nonce
     * is used twice under one key, not even after a restart.
     */
    private var ownNumbers = listOf(randomNumber())

    /** One for all tracks and epochs, and it never goes back. */
    private var counter = 0uL
    private var sending: Sending? = null

    /** Opens frames of this epoch from now on. The oldest epoch goes when there are too many. */
    @Synchronized
    public fun setKey(epoch: Int, callKey: ByteArray) {
        val held = epochs[epoch]
        // Sent again, it must not forget which frames came before.
        if (held != null && MessageDigest.isEqual(held.key, callKey)) return
        if (epoch !in 1..EPOCH_MAX) return
        val isUsed = sending?.epoch == epoch
        dropKey(epoch)
        epochs[epoch] = Epoch(callKey.copyOf(), deriveMediaBase(callKey, callId, epoch))
        if (isUsed) useKey(epoch)
        if (epochs.size > EPOCHS_MAX) dropKey(epochs.keys.min())
    }

    /** Seals frames with the key of this epoch from now on, and without an epoch none. Gives false where it is not held. */
    @Synchronized
    public fun useKey(epoch: Int?): Boolean {
        if (epoch == null) sending = null
        val held = epochs[epoch ?: return false] ?: return false
        if (sending?.epoch == epoch) return true
        val kid = kidOf(epoch, ownNumbers.first())
        sending = Sending(epoch, kid, SFrameKey.derive(held.baseKey, kid))
        return true
    }

    /** Frames of this epoch can't be opened any more, and none is sealed with its key. */
    @Synchronized
    public fun dropKey(epoch: Int) {
        epochs.remove(epoch)?.run {
            key.fill(0)
            baseKey.fill(0)
        }
        if (sending?.epoch == epoch) sending = null
    }

    /** Null where there is no key yet, or its codec makes no such frame: then nothing may be sent. */
    public fun seal(format: FrameFormat, frame: ByteArray): ByteArray? {
        val (sending, counter) = synchronized(this) { (sending ?: return null) to counter++ }
        return sealFrame(format, sending.key, sending.kid, counter, frame)
    }

    public fun open(format: FrameFormat, octets: ByteArray): FrameOutcome {
        val sealed = parseFrame(format, octets) ?: return UnopenedFrame(FrameFailure.MALFORMED)
        return openParsed(sealed)
    }

    @Synchronized
    private fun openParsed(sealed: SealedFrame): FrameOutcome {
        val kid = sealed.kid
        val epochNumber = (kid shr NUMBER_BITS).toInt()
        val epoch = epochs[epochNumber] ?: return UnopenedFrame(FrameFailure.NO_KEY)
        val known = epoch.senders[kid]
        if (known == null && epoch.senders.size >= SENDERS_MAX) return UnopenedFrame(FrameFailure.TOO_MANY_SENDERS)
        val sender = known ?: Sender(SFrameKey.derive(epoch.baseKey, kid), monotonicMs())
        if (sender.window.has(sealed.counter) || hasLeft(epochNumber, kid)) return UnopenedFrame(FrameFailure.REPLAYED)
        val frame = try {
            sealed.open(sender.key)
        } catch (_: GeneralSecurityException) {
            return UnopenedFrame(FrameFailure.NOT_AUTHENTIC)
        }
        if (kid and NUMBER_MASK in ownNumbers) {
            renewNumber()
            return UnopenedFrame(FrameFailure.REFLECTED)
        }
        epoch.senders[kid] = sender
        sender.window.add(sealed.counter)
        return OpenedFrame(frame, epochNumber, fillsEpoch = known == null && epoch.senders.size == SENDERS_MAX)
    }

    /** Frames that were on their way when the sender took a newer key have come by now. */
    private fun hasLeft(epoch: Int, kid: ULong): Boolean = epochs.any { (newer, held) ->
        val sender = if (newer > epoch) held.senders[kidOf(newer, kid and NUMBER_MASK)] else null
        sender != null && monotonicMs() - sender.sinceMs >= LATE_MS
    }

    /** The gateway has sent a frame back, or a member has the same number by chance, which must not stay so. */
    private fun renewNumber() {
        if (ownNumbers.size > RENEWALS_MAX) return
        ownNumbers = listOf(randomNumber()) + ownNumbers
        val epoch = sending?.epoch ?: return
        sending = null
        useKey(epoch)
    }

    private companion object {
        const val NUMBER_BITS = 48
        const val NUMBER_MASK = 0xffff_ffff_ffffuL
        const val EPOCH_MAX = 0xffff
        const val EPOCHS_MAX = 4

        /** Of one epoch. A member who makes up more than that has the call make a new key. */
        const val SENDERS_MAX = 4_096

        /** Frames take no longer from a sender to here. */
        const val LATE_MS = 5_000L
        const val RENEWALS_MAX = 4

        fun kidOf(epoch: Int, number: ULong): ULong = (epoch.toULong() shl NUMBER_BITS) or number

        fun randomNumber(): ULong = SecureRandom().nextLong().toULong() and NUMBER_MASK
    }
}

/** Which counters were there, of the newest 1,024. */
internal class ReplayWindow {
    /** A bit for each, by its remainder: an epoch may have thousands of windows. */
    private val seen = BitSet(WINDOW)
    private var newest: ULong? = null

    /** Also those that are too old to tell. */
    fun has(counter: ULong): Boolean {
        val newest = newest ?: return false
        if (counter > newest) return false
        return newest - counter >= WINDOW.toULong() || seen[placeOf(counter)]
    }

    /** False where it was there before. */
    fun add(counter: ULong): Boolean {
        if (has(counter)) return false
        val before = newest
        if (before == null || counter > before) {
            if (before == null || counter - before >= WINDOW.toULong()) {
                seen.clear()
            } else {
                for (passed in before + 1uL..counter) seen.clear(placeOf(passed))
            }
            newest = counter
        }
        seen.set(placeOf(counter))
        return true
    }

    private fun placeOf(counter: ULong): Int = (counter % WINDOW.toULong()).toInt()

    private companion object {
        const val WINDOW = 1024
    }
}
