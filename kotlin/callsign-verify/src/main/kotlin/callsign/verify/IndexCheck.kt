/** Whether the answers of one log are complete, by its index: what an app remembers of it, and what it reads beside the answers. */
package callsign.verify

import kotlinx.serialization.json.JsonElement

/** What a client asks of answers. */
public enum class CompletenessMode {
    /** An answer without a proof of the index that it is complete is refused at `completeness`. */
    DEMAND,

    /** A proof has to hold where there is one. Once one did, they are demanded: that is remembered with the checkpoints. */
    WHEN_OFFERED,

    /** The index is not asked. */
    OFF,
}

/** An answer that verified by itself, beside what else is known. */
internal sealed interface Fitting<out Value> {
    class Held<Value>(val value: Value) : Fitting<Value>

    class Refused(val refusal: Refusal) : Fitting<Nothing>

    class Open(val unanswered: Unanswered) : Fitting<Nothing>
}

/** [logPin] is the pin of the log, [pin] that of its index's output log. */
internal class IndexCheck(
    private val keys: LogKeys,
    private val index: IndexKeys,
    private val mode: CompletenessMode,
    private val maxIndexAgeMs: Long,
    private val nowMs: () -> Long,
    private val logPin: CheckpointPin,
    private val pin: CheckpointPin,
    private val tails: IndexTails,
) {
    /** Whether an answer has to be complete. */
    suspend fun isDemanded(): Boolean = mode == CompletenessMode.DEMAND || pin.highest() != null

    /**
     * Holds the proof beside an answer under [checkpoint], which fits the log's pin, against the index. [shown] is the leaf of the
     * answer, null where there is said to be none.
     */
    suspend fun judge(
        vrfHash: String,
        proof: JsonElement?,
        checkpoint: SignedCheckpoint,
        shown: Long?,
        isDemanded: Boolean,
    ): Fitting<Completeness> {
        if (proof == null) {
            if (!isDemanded) return Fitting.Held(Completeness.Unindexed)
            return refused("the answer has no proof of the index that it is complete")
        }
        val found = try {
            verifyIndex(keys, index, vrfHash, proof, nowMs(), maxIndexAgeMs)
        } catch (failed: CheckFailed) {
            return Fitting.Refused(failed.refusal)
        }
        pinned(logPin, found.input)?.let { return it }
        pinned(pin, found.output)?.let { return it }
        val tail = when (val read = tailOf(found.input, checkpoint)) {
            is Fitting.Held -> read.value?.under(vrfHash)
            is Fitting.Refused -> return read
            is Fitting.Open -> return read
        }
        val judged = judgeCompleteness(found, index.isRebuilt, tail, shown?.let { ShownEntry(it, checkpoint.treeSize) })
        if (judged is Fitting.Held && judged.value is Completeness.TailUnread && isDemanded)
            return refused("the log has more entries since the newest leaf of its index than are read")
        return judged
    }

    /** Null where there is too much to read. */
    private suspend fun tailOf(input: SignedCheckpoint, newer: SignedCheckpoint): Fitting<IndexTail?> = when {
        input.treeSize >= newer.treeSize -> Fitting.Held(IndexTail(emptyMap()))
        newer.treeSize - input.treeSize > IndexTails.TAIL_MAX -> Fitting.Held(null)
        else -> tails.read(input, newer)
    }

    private suspend fun pinned(pin: CheckpointPin, checkpoint: SignedCheckpoint): Fitting<Nothing>? =
        when (val outcome = pin.accept(checkpoint, nowMs())) {
            Acceptance.Accepted -> null
            is Acceptance.Refused -> Fitting.Refused(outcome.refusal)
            is Acceptance.Open -> Fitting.Open(outcome.unanswered)
        }

    private fun refused(detail: String) = Fitting.Refused(Refusal(Check.COMPLETENESS, detail))
}
