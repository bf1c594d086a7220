/**
 * Consistency proofs: an old tree is a prefix of a new one (RFC 6962, section 2.1.2; checked as in RFC 9162, section
 * 2.1.4.2). Every tree extends the empty one, and itself, with a proof of no hashes.
 */
package callsign.verify

/**
 * Every complete subtree of the new tree whose hash the proof needs; [proveConsistency] reads exactly these, in this
 * order. Throws `MALFORMED` when the old tree is the larger one.
 */
internal fun consistencyNodes(oldSize: Long, newSize: Long): List<Node> = consistencyPath(oldSize, newSize).nodes

/** The consistency proof from one size to the other. Throws `MALFORMED` when the old tree is the larger one. */
internal fun proveConsistency(oldSize: Long, newSize: Long, readHashes: ReadHashes): List<ByteArray> {
    val path = consistencyPath(oldSize, newSize)
    return foldPath(path, readHashes(path.nodes))
}

/** A consistency proof and the two trees it is held against. */
internal class ConsistencyClaim(
    val oldSize: Long,
    val oldRoot: ByteArray,
    val newSize: Long,
    val newRoot: ByteArray,
    val proof: List<ByteArray>,
)

/** Throws `PROOF_INVALID` unless the proof shows that the new root's tree starts with the old one's. */
internal fun verifyConsistency(claim: ConsistencyClaim) {
    val oldSize = claim.oldSize
    val newSize = claim.newSize
    if (oldSize !in 0..SAFE_MAX || newSize !in 0..SAFE_MAX || oldSize > newSize)
        throw refused(claim, "sizes do not fit")
    if (oldSize == 0L || oldSize == newSize) {
        if (claim.proof.isNotEmpty()) throw refused(claim, "no hashes belong in it")
        if (oldSize == 0L && !claim.oldRoot.contentEquals(EMPTY_ROOT))
            throw refused(claim, "the empty root is another")
        if (oldSize == newSize && !claim.oldRoot.contentEquals(claim.newRoot))
            throw refused(claim, "one size has two roots")
        if (oldSize == 0L && claim.newRoot.size != HASH_OCTETS) throw refused(claim, "the new root is not 32 octets")
        return
    }
    val (impliedOld, impliedNew) = impliedRoots(claim)
    if (!impliedOld.contentEquals(claim.oldRoot)) throw refused(claim, "it does not lead to the old root")
    if (!impliedNew.contentEquals(claim.newRoot)) throw refused(claim, "it does not lead to the new root")
}

/** RFC 9162, section 2.1.4.2, for 0 < oldSize < newSize: the old and the new root as the proof has them. */
private fun impliedRoots(claim: ConsistencyClaim): Pair<ByteArray, ByteArray> {
    // Steps 1 and 2. A complete old tree is itself the first node, and left out of the proof.
    if (claim.proof.isEmpty()) throw refused(claim, "it is empty")
    val hashes = if (isPowerOfTwo(claim.oldSize)) listOf(claim.oldRoot) + claim.proof else claim.proof
    if (hashes.any { it.size != HASH_OCTETS }) throw refused(claim, "a hash is not 32 octets")
    // Steps 3 and 4. The numbers of both last leaves, then of the node that the first hash is.
    var fn = claim.oldSize - 1
    var sn = claim.newSize - 1
    while (fn % 2 == 1L) {
        fn /= 2
        sn /= 2
    }
    // Step 5.
    var fr = hashes.first()
    var sr = fr
    // Step 6.
    for (c in hashes.drop(1)) {
        if (sn == 0L) throw refused(claim, "it has too many hashes")
        if (fn % 2 == 1L || fn == sn) {
            fr = hashNode(c, fr)
            sr = hashNode(c, sr)
            while (fn % 2 == 0L && fn != 0L) {
                fn /= 2
                sn /= 2
            }
        } else {
            sr = hashNode(sr, c)
        }
        fn /= 2
        sn /= 2
    }
    // Step 7; the caller compares the roots.
    if (sn != 0L) throw refused(claim, "it has too few hashes")
    return fr to sr
}

/**
 * The proof runs up from the largest complete subtree that ends where the old tree ends. When that is the whole old tree
 * (its size a power of two) the verifier knows its hash, otherwise it comes first.
 */
private fun consistencyPath(oldSize: Long, newSize: Long): Path {
    assertTreeSize(oldSize)
    assertTreeSize(newSize)
    if (oldSize > newSize) throw malformed("old size $oldSize is above the new size $newSize")
    if (oldSize == 0L || oldSize == newSize) return Path(emptyList(), 0, 0)
    val start = lastSubtree(oldSize)
    val path = pathToRoot(start, newSize)
    if (start.index == 0L) return path
    return Path(listOf(start) + path.nodes, path.foldStart + 1, path.foldEnd + 1)
}

private fun lastSubtree(treeSize: Long): Node {
    val level = java.lang.Long.numberOfTrailingZeros(treeSize)
    return Node(level, (treeSize shr level) - 1)
}

private fun isPowerOfTwo(size: Long): Boolean = size and (size - 1) == 0L

private fun refused(claim: ConsistencyClaim, reason: String): LogException =
    proofInvalid("consistency proof from size ${claim.oldSize} to ${claim.newSize}: $reason")
