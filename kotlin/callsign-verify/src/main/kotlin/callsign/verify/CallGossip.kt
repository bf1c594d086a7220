/**
 * Checkpoints that travel with call keys: behind the 32 octets of the key, inside what is sealed, stands the sender's newest
 * checkpoint with the log's signature. A log that shows two people different trees is found out when one calls the other,
 * and nothing on the way can tell or strip it.
 *
 *     key 32  version 1 (01)  packed checkpoint 108
 */
package callsign.verify

/** An opened call key, taken apart. [callKey] has 32 octets; [note] is for [LogClient.compareWith], null where none came. */
public class CallKeyWithNote internal constructor(public val callKey: ByteArray, public val note: String?)

/**
 * The octets to seal for a device of a device list; a receiver without a list takes keys of 32 octets alone. Throws
 * `MALFORMED` for a key that is not 32 octets.
 */
public fun withCheckpoint(callKey: ByteArray, checkpoint: SignedCheckpoint?): ByteArray {
    if (callKey.size != CALL_KEY_OCTETS) throw malformed("a call key has 32 octets, not ${callKey.size}")
    val packed = checkpoint?.let(::packCheckpoint) ?: return callKey
    return callKey + VERSION + packed
}

/**
 * Takes apart what was opened. [origin] is the name of the app's log. A form that is not known gives the key alone: later
 * versions may put other things behind it. Throws `MALFORMED` for less than a key.
 */
public fun readCallKey(opened: ByteArray, origin: String): CallKeyWithNote {
    if (opened.size < CALL_KEY_OCTETS) throw malformed("an opened call key has ${opened.size} octets")
    val isNoted = opened.getOrNull(CALL_KEY_OCTETS) == VERSION
    val rest = opened.copyOfRange(CALL_KEY_OCTETS, opened.size)
    val note = if (isNoted) readPackedCheckpoint(rest.copyOfRange(1, rest.size), origin) else null
    return CallKeyWithNote(opened.copyOf(CALL_KEY_OCTETS), note)
}

private const val CALL_KEY_OCTETS = 32
private const val VERSION: Byte = 1
