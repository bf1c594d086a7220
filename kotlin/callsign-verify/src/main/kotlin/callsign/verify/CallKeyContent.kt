/**
 * What is sealed of a call's key (docs/check/crypto.md): with it go the hash of the set of devices that it is sealed for, the time, and
 * the sender's newest checkpoint with the log's signature. A log that shows two people different trees is found out when one calls
 * the other, and nothing on the way can tell or strip it.
 *
 *     call key 32  set hash 32  sealed at u64, milliseconds since 1970  [ packed checkpoint 108 ]
 */
package callsign.verify

import java.nio.ByteBuffer

/** [callKey] and [setHash] have 32 octets each. [sealedAtMs] is by the sender's clock. */
public class CallKeyContent(public val callKey: ByteArray, public val setHash: ByteArray, public val sealedAtMs: Long)

/** What was opened, taken apart. [note] is for [LogClient.compareWith], which verifies it; null where none came. */
public class OpenedCallKey internal constructor(public val content: CallKeyContent, public val note: String?)

/** The octets to seal. Throws `MALFORMED` for a key, a hash or a time of another form. */
public fun packCallKey(content: CallKeyContent, checkpoint: SignedCheckpoint? = null): ByteArray {
    val (keyOctets, hashOctets) = content.callKey.size to content.setHash.size
    if (keyOctets != CALL_KEY_OCTETS || hashOctets != HASH_OCTETS || content.sealedAtMs !in TIMES_MS)
        throw malformed("a call key of $keyOctets octets, sealed at ${content.sealedAtMs}, with a hash of $hashOctets")
    val packed = checkpoint?.let(::packCheckpoint) ?: ByteArray(0)
    return ByteBuffer.allocate(CONTENT_OCTETS + packed.size)
        .put(content.callKey).put(content.setHash).putLong(content.sealedAtMs).put(packed).array()
}

/** Takes apart what was opened. [origin] is the name of the app's log. Throws `MALFORMED` for what is of another form. */
public fun readCallKey(opened: ByteArray, origin: String): OpenedCallKey {
    val behind = opened.drop(CONTENT_OCTETS).toByteArray()
    val note = readPackedCheckpoint(behind, origin)
    val isWhole = opened.size == CONTENT_OCTETS || note != null
    val sealedAtMs = if (isWhole) uint64At(opened, TIME_AT).toLong() else -1
    if (sealedAtMs !in TIMES_MS) throw malformed("${opened.size} octets are not what is sealed of a call's key")
    val callKey = opened.copyOf(CALL_KEY_OCTETS)
    return OpenedCallKey(CallKeyContent(callKey, opened.copyOfRange(CALL_KEY_OCTETS, TIME_AT), sealedAtMs), note)
}

private const val CALL_KEY_OCTETS = 32
private const val TIME_AT = CALL_KEY_OCTETS + HASH_OCTETS
private const val CONTENT_OCTETS = TIME_AT + 8

/** Every implementation can hold these, also one whose numbers are IEEE 754 doubles. */
private val TIMES_MS = 0..(1L shl 53) - 1
