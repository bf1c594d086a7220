/**
 * A call's keys as LiveKit's key providers take them: one for each device and epoch, by the label that the device has at the
 * gateway. The server gives the labels, and the keys are of devices: swapped labels give silence, not another person's sound.
 */
package callsign.app

import callsign.verify.encodeBase64
import java.nio.ByteBuffer
import java.security.SecureRandom
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.withTimeoutOrNull

/**
 * For `setKey` of a key provider. [isSending]: this device seals with it; it comes last, since such providers send with the newest
 * index. [isOver]: random octets, since the epoch has ended.
 */
public data class LiveKitSlot(
    public val identity: String,
    public val key: String,
    public val keyIndex: Int,
    public val isSending: Boolean,
    public val isOver: Boolean,
)

/** For the frames of one device in one epoch. A string, since all LiveKit SDKs derive the same AES key from a string alone. */
public fun liveKitKey(callKey: ByteArray, callId: String, epoch: Long, userId: ULong, deviceId: ULong): String {
    val numbers = ByteBuffer.allocate(28)
    numbers.putLong(callId.toULong().toLong()).putInt(epoch.toInt())
    numbers.putLong(userId.toLong()).putLong(deviceId.toLong())
    val info = "callsign livekit v1\n".toByteArray() + numbers.array()
    return encodeBase64(hkdf("HmacSHA256", callKey, info, 32))
}

/**
 * Throws `MEDIA_UNSUPPORTED` unless the server has keys of 128 bits, the only ones that LiveKit derives on a phone. By this call the
 * app allows them.
 */
public fun Call.allowAes128() {
    val keySize = media?.keySize
    if (keySize == 128L) return
    throw CallsignException("MEDIA_UNSUPPORTED", "The server has keys of $keySize bits, and LiveKit on a phone none but of 128.")
}

/** A call as far as its media needs it. [sendingEpoch] is 0 without a key. */
internal data class LiveKitCall(
    val callId: String,
    val userId: ULong,
    val isOver: Boolean,
    val keys: List<EpochKey>,
    val sendingEpoch: Long,
    val participants: List<CallParticipant>,
)

/** Each key of each device, now and as they come and end. Ends with the call. */
internal fun slotsOf(
    calls: StateFlow<LiveKitCall>,
    monotonicMs: () -> Long = { System.nanoTime() / 1_000_000 },
): Flow<LiveKitSlot> = flow {
    val slots = LiveKitSlots(monotonicMs)
    while (true) {
        val call = calls.value
        for (slot in slots.follow(call)) emit(slot)
        if (call.isOver) return@flow
        val waitMs = slots.waitMs
        if (waitMs == null) calls.first { it != call } else withTimeoutOrNull(waitMs) { calls.first { it != call } }
    }
}

internal class LiveKitSlots(private val monotonicMs: () -> Long) {
    private data class Place(val identity: String, val keyIndex: Int)

    private var held: Map<Place, LiveKitSlot> = emptyMap()
    private val comeAtMs = mutableMapOf<Long, Long>()

    /** Until the next epoch may come, if one waits. */
    var waitMs: Long? = null
        private set

    /** What is to be set now, in this order. */
    fun follow(call: LiveKitCall): List<LiveKitSlot> {
        waitMs = noteEpochs(call.keys.map { it.epoch }.sorted())
        val slots = if (call.isOver) emptyMap() else slotsOf(call)
        val over = (held - slots.keys).values.map { it.copy(key = randomKey(), isSending = false, isOver = true) }
        val news = slots.filter { (place, slot) ->
            val before = held[place]
            before?.key != slot.key || slot.isSending && !before.isSending
        }.values
        held = slots
        val sending = slots.values.find { it.isSending }?.takeIf { own -> (news + over).any { it.identity == own.identity } }
        return news.filter { !it.isSending } + over + listOfNotNull(sending)
    }

    /** This device seals with the call's sending key, and opens frames with each key that it holds. */
    private fun slotsOf(call: LiveKitCall): Map<Place, LiveKitSlot> {
        val ready = call.keys.filter { it.epoch in comeAtMs }.sortedBy { it.epoch }
        val used = ready.filter { it.epoch <= call.sendingEpoch }
        val self = call.participants.find { it.userId == call.userId } ?: return emptyMap()
        val others = call.participants.filter { it.userId != self.userId && it.identity != self.identity }
        val slots = mutableMapOf<Place, LiveKitSlot>()
        for (one in others + self) {
            val identity = one.identity ?: continue
            val deviceId = one.deviceId ?: continue
            if (one.state != ParticipantState.JOINED) continue
            for (key in if (one === self) used else ready) {
                val place = Place(identity, (key.epoch % SLOTS).toInt())
                val text = liveKitKey(key.key, call.callId, key.epoch, one.userId, deviceId)
                slots[place] = LiveKitSlot(identity, text, place.keyIndex, one === self && key === used.last(), isOver = false)
            }
        }
        return slots
    }

    /**
     * Notes which epochs are here, so that no key meets one in its slot whose frames may still be on their way: they are opened for a
     * minute. Gives how long the next one has to wait, if there is one.
     */
    private fun noteEpochs(epochs: List<Long>): Long? {
        val nowMs = monotonicMs()
        comeAtMs.entries.removeIf { (epoch, atMs) -> epoch !in epochs && nowMs - atMs >= SPREAD_MS }
        for (epoch in epochs) {
            if (epoch in comeAtMs) continue
            val recent = comeAtMs.values.filter { nowMs - it < SPREAD_MS }
            if (recent.size >= EPOCHS_MAX) return recent.min() + SPREAD_MS - nowMs
            comeAtMs[epoch] = nowMs
        }
        return null
    }

    private companion object {
        /** The size of the key ring in LiveKit's SDKs. */
        const val SLOTS = 16L

        /** The most epochs that are taken within the time that an old one still opens frames. */
        const val EPOCHS_MAX = 14
        const val SPREAD_MS = 60_000L

        /** Known to no device. */
        fun randomKey() = encodeBase64(ByteArray(32).also(SecureRandom()::nextBytes))
    }
}
