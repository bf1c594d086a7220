/**
 * One lookup in the log's index, which says at which leaves of the log a hash has entries: all of them up to the tree of the
 * index's newest leaf, or none. Checked without a network; what the log holds beyond that tree is for [IndexCheck] to read.
 */
package callsign.verify

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * An index's claim about a hash: it has entries at [indexes], ascending, and at no other leaf of the tree of [input], a
 * checkpoint of the log. [output] is a checkpoint of the index's own log. [ageMs] is how long ago the index's quorum had last seen
 * it; null where none is asked for.
 */
internal class VerifiedIndex(
    val indexes: List<Long>,
    val input: SignedCheckpoint,
    val output: SignedCheckpoint,
    val ageMs: Long?,
)

/**
 * Holds an `indexProof` of a stranger's JSON against the keys of log and index. [vrfHash] is base64, and was proven. [nowMs] is
 * POSIX time, and [maxAgeMs] says how old [VerifiedIndex.ageMs] may be, both in milliseconds. Throws [CheckFailed] at
 * `completeness`, at `witnesses` or `stale`, and where a checkpoint does not hold.
 */
internal fun verifyIndex(
    keys: LogKeys,
    index: IndexKeys,
    vrfHash: String,
    proof: JsonElement?,
    nowMs: Long,
    maxAgeMs: Long,
): VerifiedIndex {
    val lookup = during(Check.COMPLETENESS) { readIndexLookup(proof) }
    val output = openSignedCheckpoint(index.log, lookup.outputCheckpoint)
    val leaf = during(Check.COMPLETENESS) { provenLeaf(lookup, output) }
    val input = openSignedCheckpoint(keys, leaf.inputCheckpoint)
    during(Check.COMPLETENESS) { assertMapped(leaf, vrfHash, lookup, input) }
    return when (val witnessed = verifyWitnesses(index.log, output.note, nowMs, maxAgeMs)) {
        is Refusal -> throw CheckFailed(witnessed)
        is Witnessed -> VerifiedIndex(lookup.indexes, input, output, witnessed.atMs?.let { maxOf(0, nowMs - it) })
    }
}

/** The newest leaf of the output log. */
private fun provenLeaf(lookup: IndexLookup, output: SignedCheckpoint): IndexLeaf {
    if (output.treeSize == 0L) throw incomplete("the index has no leaf")
    val rootHash = decodeBase64(output.rootHash)
    verifyInclusion(InclusionClaim(hashLeaf(lookup.leaf), output.treeSize - 1, output.treeSize, lookup.path, rootHash))
    return parseIndexLeaf(lookup.leaf)
}

private fun assertMapped(leaf: IndexLeaf, vrfHash: String, lookup: IndexLookup, input: SignedCheckpoint) {
    val beyond = lookup.indexes.find { it >= input.treeSize }
    if (beyond != null) throw incomplete("the index has leaf $beyond in a tree of size ${input.treeSize}")
    val value = if (lookup.indexes.isEmpty()) null else indexValueOf(lookup.indexes)
    verifyPatricia(PatriciaClaim(leaf.root, indexKeyOf(vrfHash), value, lookup.proof))
}

/** The members of an `indexProof`, taken apart. [path] runs from the newest leaf's sibling up. */
private class IndexLookup(
    val outputCheckpoint: String,
    val leaf: ByteArray,
    val path: List<ByteArray>,
    val indexes: List<Long>,
    val proof: ByteArray,
)

/** Throws `MALFORMED` for another form. */
private fun readIndexLookup(proof: JsonElement?): IndexLookup {
    val members = proof as? JsonObject ?: throw malformed("the proof of the index is no object")
    return IndexLookup(
        decodeUtf8(octetsIn(members["output_log_cp"], NOTE_OCTETS_MAX)),
        octetsIn(members["output_log_leaf"], INDEX_LEAF_OCTETS_MAX),
        listIn(members["output_log_proof"], PATH_HASHES_MAX).map(::hashIn),
        indexesIn(listIn(members["index_value"], INDEXES_MAX)),
        octetsIn(members["index_proof"], PROOF_OCTETS_MAX),
    )
}

private fun octetsIn(element: JsonElement?, octetsMax: Int): ByteArray {
    val text = textOf(element) ?: throw malformed("the proof of the index lacks a text")
    if (text.length > 4 * ((octetsMax + 2) / 3)) throw malformed("a text in the proof of the index is too long")
    return decodeBase64(text)
}

private fun listIn(element: JsonElement?, sizeMax: Int): List<JsonElement> {
    val list = element as? JsonArray ?: throw malformed("the proof of the index lacks a list")
    if (list.size > sizeMax) throw malformed("a list in the proof of the index is too long")
    return list
}

private fun indexesIn(list: List<JsonElement>): List<Long> {
    val indexes = list.map { numberIn(it, SAFE_MAX) }
    if (indexes.zipWithNext().any { (one, next) -> one >= next })
        throw malformed("the leaves that the index has for a hash do not ascend")
    return indexes
}

private fun hashIn(element: JsonElement): ByteArray {
    val numbers = listIn(element, HASH_OCTETS)
    if (numbers.size != HASH_OCTETS) throw malformed("a hash in the proof of the index has not 32 octets")
    return numbers.map { numberIn(it, 255).toByte() }.toByteArray()
}

/** As JavaScript reads it, which has one kind of number. */
private fun numberIn(element: JsonElement, max: Long): Long {
    val number = (element as? JsonPrimitive)?.takeUnless { it.isString }?.content?.toDoubleOrNull()
    if (number == null || number % 1 != 0.0 || number < 0 || number > max)
        throw malformed("a number in the proof of the index is not one from 0 to $max")
    return number.toLong()
}

/**
 * Whether an answer proves that its entry is the newest of its hash, and which further entries there are.
 */
public sealed interface Completeness {
    public val kind: Kind

    /** The best one first. [wireName] is the name that `@callsign/sdk/client` gives it, but for its `true`. */
    public enum class Kind(public val wireName: String) {
        COMPLETE("true"),
        TAIL_UNREAD("tail-unread"),
        UNINDEXED("unindexed"),
    }

    /**
     * The entries at [indexes], ascending, are all under its hash up to its checkpoint. [indexAgeMs] is how many
     * milliseconds ago the quorum had seen the index's newest leaf; null without a quorum. [isProved]: cosigners that rebuild the
     * index vouch for that; else auditors find out an index that lies.
     */
    public data class Complete(
        public val indexes: List<Long>,
        public val indexAgeMs: Long?,
        public val isProved: Boolean,
    ) : Completeness {
        override val kind: Kind get() = Kind.COMPLETE
    }

    /** The log has grown too far since the index's newest leaf. */
    public data object TailUnread : Completeness {
        override val kind: Kind get() = Kind.TAIL_UNREAD
    }

    /** No index was asked, or none was offered. */
    public data object Unindexed : Completeness {
        override val kind: Kind get() = Kind.UNINDEXED
    }
}

/** The least of what several answers prove. */
internal fun leastOf(proved: List<Completeness>): Completeness.Kind = proved.maxOf(Completeness::kind)

/** Whether cosigners that rebuild the index vouch for all of several answers. */
internal fun areProved(proved: List<Completeness>): Boolean = proved.all { it is Completeness.Complete && it.isProved }

/** The entry that was shown for a hash, and the size of the tree that it was shown in. */
internal class ShownEntry(val index: Long, val treeSize: Long)

/**
 * Compares the shown entry with index and tail. [shown] is null where the hash is said to have no entry. [tail] has the entries
 * under the hash from the input checkpoint to the answer's; null: unread. An answer from before the index's newest leaf, which has
 * a newer entry, is unanswered at `stale`.
 */
internal fun judgeCompleteness(
    index: VerifiedIndex,
    isProved: Boolean,
    tail: List<Long>?,
    shown: ShownEntry?,
): Fitting<Completeness> {
    val found = index.indexes + tail.orEmpty()
    if (shown == null) {
        val other = found.lastOrNull()
        if (other != null) return refusedAs("entry $other is under a hash that is said to have none")
    } else {
        // The shown entry is the only known one of an unread tail.
        val isInTail = tail == null && shown.index >= index.input.treeSize
        val newest = if (isInTail) shown.index else found.lastOrNull { it < shown.treeSize }
        if (newest == null || newest < shown.index) return refusedAs("the index leaves out entry ${shown.index}")
        if (newest > shown.index) return refusedAs("entry $newest is newer under this hash than entry ${shown.index}")
        val last = found.lastOrNull()
        if (last != null && last >= shown.treeSize) {
            val detail = "entry $last is newer than the answer's tree size ${shown.treeSize}"
            return Fitting.Open(Unanswered(detail, check = Check.STALE))
        }
    }
    return Fitting.Held(if (tail == null) Completeness.TailUnread else Completeness.Complete(found, index.ageMs, isProved))
}

private fun refusedAs(detail: String) = Fitting.Refused(Refusal(Check.COMPLETENESS, detail))

internal fun incomplete(detail: String): CheckFailed = CheckFailed(Check.COMPLETENESS, detail)

private const val NOTE_OCTETS_MAX = 1_000_000
private const val PATH_HASHES_MAX = 63

/** So many keys under one hash, and a proof of their key with as many steps as there are bits. */
private const val INDEXES_MAX = 65_535
private const val PROOF_OCTETS_MAX = 65_536
