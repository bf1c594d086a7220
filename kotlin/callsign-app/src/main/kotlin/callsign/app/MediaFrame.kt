/**
 * The format `callsign-media-1` of one encoded frame, as docs/protocol/media-frames.md has it: some octets stay clear, for the gateway and the
 * receiver's depacketizer; an SFrame with all that follows comes after them.
 */
package callsign.app

/** The codec that made a frame. */
public enum class FrameFormat { OPUS, VP8, H264 }

/**
 * A sealed frame taken apart; none of it is known to be true before it is opened. [metadata] are the clear octets that are
 * authenticated, and [sealed] ciphertext and tag.
 */
internal class SealedFrame(
    val kid: ULong,
    val counter: ULong,
    val clear: ByteArray,
    val metadata: ByteArray,
    val header: ByteArray,
    val sealed: ByteArray,
) {
    /** The encoder's frame. Throws `GeneralSecurityException` unless it is authentic. */
    fun open(key: SFrameKey): ByteArray = clear + key.open(counter, header, metadata, sealed)
}

/** 32 octets from the call's key, which serves other purposes too. */
internal fun deriveMediaBase(callKey: ByteArray, callId: String, epoch: Int): ByteArray =
    hkdf("HmacSHA256", callKey, "callsign media v1 $callId $epoch".toByteArray(), 32)

/** Null for a frame that its codec does not make: it must not be sent. */
internal fun sealFrame(format: FrameFormat, key: SFrameKey, kid: ULong, counter: ULong, frame: ByteArray): ByteArray? {
    val split = splitOf(format, frame) ?: return null
    val clear = frame.copyOf(split.last + 1)
    val sframe = key.seal(kid, counter, frame.sliceArray(split), frame.copyOfRange(clear.size, frame.size))
    return clear + if (format == FrameFormat.H264) escapeNal(sframe, clear) else sframe
}

/** Null for octets that no sender makes. */
internal fun parseFrame(format: FrameFormat, frame: ByteArray): SealedFrame? {
    val split = splitOf(format, frame) ?: return null
    val clear = frame.copyOf(split.last + 1)
    val behind = frame.copyOfRange(clear.size, frame.size)
    val sframe = if (format == FrameFormat.H264) unescapeNal(behind, clear) else behind
    val header = parseSFrameHeader(sframe) ?: return null
    if (sframe.size < header.size + TAG_OCTETS) return null
    return SealedFrame(
        header.kid,
        header.counter,
        clear,
        frame.sliceArray(split),
        sframe.copyOf(header.size),
        sframe.copyOfRange(header.size, sframe.size),
    )
}

/**
 * The clear octets that are authenticated; all before them is clear too. Null for a frame that is shorter, or has no slice: all
 * of it would be clear.
 */
private fun splitOf(format: FrameFormat, frame: ByteArray): IntRange? {
    val from = if (format == FrameFormat.H264) sliceIn(frame) ?: return null else 0
    val size = when (format) {
        FrameFormat.OPUS -> 0
        // The frame tag of RFC 6386, section 9.1; the start code and size of a key frame, whose first bit is 0.
        FrameFormat.VP8 -> if (frame.isNotEmpty() && frame[0].toInt() and 1 == 0) 10 else 3
        // Parameter sets and start codes before the slice may be written anew on the way.
        FrameFormat.H264 -> 3
    }
    return if (frame.size < from + size) null else from until from + size
}

/** The offset of the first slice's NAL header (ITU-T H.264, table 7-1). */
private fun sliceIn(frame: ByteArray): Int? = (3 until frame.size).firstOrNull { at ->
    val isStart = frame[at - 3].toInt() == 0 && frame[at - 2].toInt() == 0 && frame[at - 1].toInt() == 1
    isStart && frame[at].toInt() and 31 in 1..5
}

/**
 * Emulation prevention (ITU-T H.264, section 7.4.1): 3 comes before an octet below 4 that follows two zeros, for a start code by
 * chance would split the frame. Zeros at the end of [before] count.
 */
internal fun escapeNal(octets: ByteArray, before: ByteArray): ByteArray {
    val escaped = ByteArray(octets.size + (octets.size + 3) / 2)
    var size = 0
    var zeros = zerosAtEnd(before)
    for (octet in octets) {
        if (zeros >= 2 && octet in 0..3) {
            escaped[size++] = 3
            zeros = 0
        }
        escaped[size++] = octet
        zeros = if (octet.toInt() == 0) zeros + 1 else 0
    }
    return escaped.copyOf(size)
}

internal fun unescapeNal(octets: ByteArray, before: ByteArray): ByteArray {
    val unescaped = ByteArray(octets.size)
    var size = 0
    var zeros = zerosAtEnd(before)
    for (octet in octets) {
        if (zeros >= 2 && octet.toInt() == 3) {
            zeros = 0
            continue
        }
        unescaped[size++] = octet
        zeros = if (octet.toInt() == 0) zeros + 1 else 0
    }
    return unescaped.copyOf(size)
}

private fun zerosAtEnd(octets: ByteArray): Int = octets.takeLast(2).takeLastWhile { it.toInt() == 0 }.size
