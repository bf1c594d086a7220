/** Checkpoints as clients keep and exchange them: what one says, with the signed note that proves it. */
package callsign.verify

/** A checkpoint that the log signed. [rootHash] is base64, [note] the signed text as it came. */
public data class SignedCheckpoint(
    val origin: String,
    val treeSize: Long,
    val rootHash: String,
    val note: String,
)

/** The verdict on a note: [VerifiedCheckpoint] or [Refusal]. */
public sealed interface CheckpointVerdict : CheckpointOutcome

/** [CheckpointVerdict], or [Unanswered]. */
public sealed interface CheckpointOutcome

/** The log signed this checkpoint. */
public data class VerifiedCheckpoint(override val checkpoint: SignedCheckpoint) : CheckpointVerdict, Checkpointed

/** A verdict that rests on a checkpoint. */
internal interface Checkpointed {
    val checkpoint: SignedCheckpoint
}

/** The relation of a second checkpoint's tree to the first one's: [SizeComparison] or [Refusal]. */
public sealed interface ComparisonVerdict

/** The second tree beside the first one. */
public enum class SizeComparison : ComparisonVerdict { SAME, SMALLER, LARGER }

/** The checkpoint in a note from anywhere. Refused at `origin`, `checkpoint` or `signature`. */
public fun verifyCheckpoint(keys: LogKeys, note: String): CheckpointVerdict = try {
    VerifiedCheckpoint(openSignedCheckpoint(keys, note))
} catch (failed: CheckFailed) {
    failed.refusal
}

/**
 * Holds a checkpoint against one known before, of the same log. One size with two roots is a `fork`, with both notes as
 * evidence; whether a larger tree begins with the smaller one is for [consistencyFromTiles] to say.
 */
public fun compareCheckpoints(known: SignedCheckpoint, seen: SignedCheckpoint): ComparisonVerdict = when {
    seen.origin != known.origin -> Refusal(Check.ORIGIN, "checkpoints of ${known.origin} and of ${seen.origin}")
    seen.treeSize < known.treeSize -> SizeComparison.SMALLER
    seen.treeSize > known.treeSize -> SizeComparison.LARGER
    seen.rootHash == known.rootHash -> SizeComparison.SAME
    else -> {
        val detail = "tree size ${seen.treeSize} was signed with two roots"
        Refusal(Check.FORK, detail, Evidence(known.note, seen.note))
    }
}

/** As [verifyCheckpoint], but throws [CheckFailed]. */
internal fun openSignedCheckpoint(keys: LogKeys, note: String): SignedCheckpoint {
    keys.lastOpened.find { it.note == note }?.let { return it }
    return openUnknown(keys, note).also(keys.lastOpened::keep)
}

private fun openUnknown(keys: LogKeys, note: String): SignedCheckpoint {
    val origin = note.substringBefore('\n')
    if (origin != keys.origin)
        throw CheckFailed(Check.ORIGIN, "checkpoint is of \"${origin.take(80)}\", not of ${keys.origin}")
    val text = openLogNote(note, keys.verifiers)
    val checkpoint = during(Check.CHECKPOINT) { parseCheckpoint(text) }
    if (checkpoint.treeSize == 0L && !checkpoint.rootHash.contentEquals(EMPTY_ROOT))
        throw CheckFailed(Check.CHECKPOINT, "the tree without entries has another root")
    return SignedCheckpoint(origin, checkpoint.treeSize, encodeBase64(checkpoint.rootHash), note)
}

private fun openLogNote(note: String, verifiers: List<VerifierKey>): String = try {
    openNote(note, verifiers).text
} catch (error: LogException) {
    val check = if (error.code == LogErrorCode.SIGNATURE_INVALID) Check.SIGNATURE else Check.CHECKPOINT
    throw CheckFailed(check, error.message.orEmpty())
}
