/** Inclusion proofs: an entry is in the tree (RFC 6962, section 2.1.1; checked as in RFC 9162, section 2.1.3.2). */
package callsign.verify

/**
 * The root implied by an inclusion proof. [path] runs from the leaf's sibling up to the root's child. Throws `MALFORMED`
 * when its length cannot belong to that leaf of a tree of [treeSize], or a hash has not 32 octets.
 */
internal fun rootFromPath(leaf: ByteArray, index: Long, treeSize: Long, path: List<ByteArray>): ByteArray {
    assertTreeSize(treeSize)
    if (index !in 0 until treeSize) throw malformed("index $index is not in a tree of size $treeSize")
    if (leaf.size != HASH_OCTETS) throw malformed("leaf hash is not 32 octets")
    // Steps 2 and 3. The numbers of the leaf and of the last leaf, divided by two on every level.
    var fn = index
    var sn = treeSize - 1
    var r = leaf
    // Step 4.
    for (p in path) {
        if (sn == 0L) throw wrongLength(index, treeSize, path)
        if (fn % 2 == 1L || fn == sn) {
            r = hashNode(p, r)
            // Levels on which the node stands alone at the right end have no hash in the proof.
            while (fn % 2 == 0L && fn != 0L) {
                fn /= 2
                sn /= 2
            }
        } else {
            r = hashNode(r, p)
        }
        fn /= 2
        sn /= 2
    }
    // Step 5.
    if (sn != 0L) throw wrongLength(index, treeSize, path)
    return r
}

/** An inclusion proof and all that it is held against. */
internal class InclusionClaim(
    val leafHash: ByteArray,
    val index: Long,
    val treeSize: Long,
    val path: List<ByteArray>,
    val rootHash: ByteArray,
)

/** Throws `PROOF_INVALID` unless the path shows the leaf at its index of the tree with that size and root. */
internal fun verifyInclusion(claim: InclusionClaim) {
    val implied = try {
        rootFromPath(claim.leafHash, claim.index, claim.treeSize, claim.path)
    } catch (cause: LogException) {
        val message = "inclusion proof of leaf ${claim.index} is malformed"
        throw LogException(LogErrorCode.PROOF_INVALID, message, cause)
    }
    if (!implied.contentEquals(claim.rootHash))
        throw proofInvalid("leaf ${claim.index} does not lead to the root of size ${claim.treeSize}")
}

private fun wrongLength(index: Long, treeSize: Long, path: List<ByteArray>): LogException =
    malformed("path of ${path.size} does not fit leaf $index of $treeSize")
