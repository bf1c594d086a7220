/**
 * Whether independent witnesses have seen a checkpoint, and how lately. Without them the log's server can show each client
 * a tree of its own, or an old one for ever, until two clients compare.
 */
package callsign.verify

/** The verdict on a checkpoint's cosignatures: [Witnessed] or [Refusal]. */
public sealed interface WitnessVerdict

/** The newest time at which the quorum had seen the checkpoint, in POSIX milliseconds; null where none is asked for. */
public data class Witnessed(val atMs: Long?) : WitnessVerdict

/** The last note that was looked at. */
internal class WitnessedNote(val note: String, val atMs: Long?)

/**
 * Holds the cosignatures of a checkpoint against the app's policy. [nowMs] is POSIX time in milliseconds; [maxAgeMs] says
 * how old [Witnessed.atMs] may be. Refused at `witnesses` or `stale`, and where [verifyCheckpoint] refuses it.
 */
public fun verifyWitnesses(keys: LogKeys, note: String, nowMs: Long, maxAgeMs: Long? = null): WitnessVerdict {
    val quorum = keys.quorum ?: return Witnessed(null)
    val atMs = try {
        witnessedAtMs(keys, quorum, note)
    } catch (failed: CheckFailed) {
        return failed.refusal
    }
    if (atMs == null) return Refusal(Check.WITNESSES, "checkpoint has no cosignatures of the quorum ${quorum.name}")
    if (maxAgeMs != null && nowMs - atMs > maxAgeMs) {
        val seconds = (nowMs - atMs) / 1_000
        return Refusal(Check.STALE, "the quorum ${quorum.name} saw the checkpoint $seconds s ago")
    }
    return Witnessed(atMs)
}

private fun witnessedAtMs(keys: LogKeys, quorum: QuorumMember, note: String): Long? {
    keys.lastWitnessed?.takeIf { it.note == note }?.let { return it.atMs }
    openSignedCheckpoint(keys, note)
    val read = readNote(note)
    val atMs = quorumSeconds(quorum) { witness ->
        read.signatures
            .filter { it.name == witness.key.name && it.keyId == witness.key.keyId }
            .mapNotNull { cosignedAtSeconds(read.text, witness.key, it.signature) }
            .maxOrNull()
    }?.times(1_000)
    keys.lastWitnessed = WitnessedNote(note, atMs)
    return atMs
}
