/** The index of one log as one installation of an app sees it: whether it proves answers complete. */
package callsign.verify

import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull

/** Whether answers have to prove by the log's index that they are complete; [wireName] is what `@callsign/sdk/client` calls it. */
public enum class CompletenessDemand(public val wireName: String) {
    /** An answer that does not prove that it is complete is refused at `completeness`. */
    DEMAND("demand"),

    /** One without a proof is taken, until an index has been verified once: that is remembered with the checkpoints. */
    WHEN_OFFERED("when-offered"),

    /** No index is asked. */
    OFF("off"),
}

/**
 * A user without a device list, as their server names them: nothing is under the hash of their list, [vrfHash] in base64.
 * [vrfProof] is base64 of 80 octets, [indexProof] the JSON text of that member, where there is one.
 */
public data class AbsentList(val vrfHash: String, val vrfProof: String, val indexProof: String? = null)

/** The verdict on the claim that nothing is logged for a user and device: [Absence], [Refusal] or [Unanswered]. */
public sealed interface AbsenceOutcome

/** Nothing was logged for this user and device, as far as [completeness] says. */
public data class Absence(val completeness: Completeness) : AbsenceOutcome

/** An answer that verified by itself, beside what else is known. */
internal sealed interface Fitting<out Value> {
    class Held<Value>(val value: Value) : Fitting<Value>

    class Refused(val refusal: Refusal) : Fitting<Nothing>

    class Open(val unanswered: Unanswered) : Fitting<Nothing>
}

/**
 * [logPin] pins the log, [pin] its index's output log. [maxAgeMs] says how many milliseconds old the newest leaf
 * of the index may be. Its functions throw what the store throws.
 */
internal class IndexCheck(
    private val keys: LogKeys,
    private val index: IndexKeys,
    private val demand: CompletenessDemand,
    private val maxAgeMs: Long,
    private val nowMs: () -> Long,
    private val logPin: CheckpointPin,
    private val pin: CheckpointPin,
    private val tails: IndexTails,
) {
    /** Whether answers are asked for a proof. */
    val isAsked: Boolean get() = demand != CompletenessDemand.OFF

    /** The verdict on an answer, with what its proof says of it; [proof] is null where it has none. */
    suspend fun complete(verdict: VerifiedKey, proof: JsonElement?): LookupOutcome {
        val checkpoint = verdict.checkpoint
        val shown = ShownEntry(verdict.index, checkpoint.treeSize)
        return when (val judged = judge(verdict.vrfHash, proof, checkpoint, shown)) {
            is Fitting.Held -> verdict.copy(completeness = judged.value)
            is Fitting.Refused -> judged.refusal
            is Fitting.Open -> judged.unanswered
        }
    }

    /** Whether nothing is in the log for a user and device, up to the highest checkpoint seen. */
    suspend fun absent(userId: ULong, deviceId: ULong, absent: AbsentList?): AbsenceOutcome {
        if (!isAsked) return Absence(Completeness.Unindexed)
        val vrfHash = try {
            absent?.let { namedHash(vrfInput(userId, deviceId), it) }.orEmpty()
        } catch (failed: CheckFailed) {
            return failed.refusal
        }
        // A text that is no JSON is no proof.
        val proof = absent?.indexProof?.let { parseJson(it) ?: JsonNull }
        return when (val judged = judge(vrfHash, proof, logPin.highest(), null)) {
            is Fitting.Held -> Absence(judged.value)
            is Fitting.Refused -> judged.refusal
            is Fitting.Open -> judged.unanswered
        }
    }

    /** As [LogClient.compareWith]. */
    suspend fun compareWith(note: String): CheckpointOutcome = when (val verdict = verifyCheckpoint(index.log, note)) {
        is Refusal -> verdict
        is VerifiedCheckpoint -> when (val outcome = pin.accept(verdict.checkpoint, nowMs())) {
            Acceptance.Accepted -> verdict
            is Acceptance.Refused -> outcome.refusal
            is Acceptance.Open -> outcome.unanswered
        }
    }

    suspend fun highestCheckpoint(): SignedCheckpoint? = pin.highest()

    private suspend fun judge(
        vrfHash: String,
        proof: JsonElement?,
        newest: SignedCheckpoint?,
        shown: ShownEntry?,
    ): Fitting<Completeness> {
        val isDemanded = demand == CompletenessDemand.DEMAND || pin.hasSeen()
        if (proof == null)
            return if (isDemanded) refused("the answer has no proof from the index") else Fitting.Held(Completeness.Unindexed)
        val found = try {
            verifyIndex(keys, index, vrfHash, proof, nowMs(), maxAgeMs)
        } catch (failed: CheckFailed) {
            return Fitting.Refused(failed.refusal)
        }
        unfit(found)?.let { return it }
        val tail = when (val read = tailAfter(found.input, newest ?: found.input)) {
            is Fitting.Held -> read.value
            is Fitting.Refused -> return read
            is Fitting.Open -> return read
        }
        if (tail == null && isDemanded)
            return refused("the log has more entries since the newest leaf of the index than are read")
        return judgeCompleteness(found, index.isRebuilt, tail?.under(vrfHash), shown)
    }

    /** Null where both checkpoints fit those seen before. */
    private suspend fun unfit(found: VerifiedIndex): Fitting<Nothing>? =
        unfit(logPin.accept(found.input, nowMs())) ?: unfit(pin.accept(found.output, nowMs()))

    private fun unfit(outcome: Acceptance): Fitting<Nothing>? = when (outcome) {
        Acceptance.Accepted -> null
        is Acceptance.Refused -> Fitting.Refused(outcome.refusal)
        is Acceptance.Open -> Fitting.Open(outcome.unanswered)
    }

    /** Null where there is more than anyone has to read. */
    private suspend fun tailAfter(older: SignedCheckpoint, newer: SignedCheckpoint): Fitting<IndexTail?> = when {
        newer.treeSize <= older.treeSize -> Fitting.Held(IndexTail(emptyMap()))
        newer.treeSize - older.treeSize > IndexTails.ENTRIES_MAX -> Fitting.Held(null)
        else -> tails.read(older, newer)
    }

    /** Throws [CheckFailed] unless the VRF proves the hash. */
    private fun namedHash(input: ByteArray, absent: AbsentList): String {
        if (absent.vrfProof.length > PROOF_CHARS_MAX)
            throw CheckFailed(Check.PROOF, "the server names no hash that has nothing under it")
        val vrfProof = during(Check.PROOF) { decodeBase64(absent.vrfProof) }
        assertHash(proveHash(keys, input, vrfProof), absent.vrfHash, absent.vrfHash)
        return absent.vrfHash
    }

    private fun refused(detail: String) = Fitting.Refused(Refusal(Check.COMPLETENESS, detail))

    private companion object {
        /** 80 octets in base64. */
        const val PROOF_CHARS_MAX = 108
    }
}
