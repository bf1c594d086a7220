// Inclusion proofs: an entry is in the tree (RFC 6962, section 2.1.1; checked as in RFC 9162, section 2.1.3.2).

/// The root implied by an inclusion proof. `path` runs from the leaf's sibling up to the root's child. Throws `malformed` when
/// its length cannot belong to that leaf of a tree of `treeSize`, or a hash has not 32 octets.
func rootFromPath(leaf: [UInt8], index: Int, treeSize: Int, path: [[UInt8]]) throws(LogError) -> [UInt8] {
    try assertTreeSize(treeSize)
    guard index >= 0, index < treeSize else { throw .malformed("index \(index) is not in a tree of size \(treeSize)") }
    if leaf.count != hashOctets { throw .malformed("leaf hash is not 32 octets") }
    let wrongLength = LogError.malformed("path of \(path.count) does not fit leaf \(index) of \(treeSize)")
    // Steps 2 and 3. The numbers of the leaf and of the last leaf, divided by two on every level.
    var fn = index
    var sn = treeSize - 1
    var r = leaf
    // Step 4.
    for p in path {
        if sn == 0 { throw wrongLength }
        if fn % 2 == 1 || fn == sn {
            r = try hashNode(p, r)
            // Levels on which the node stands alone at the right end have no hash in the proof.
            while fn % 2 == 0 && fn != 0 {
                fn /= 2
                sn /= 2
            }
        } else {
            r = try hashNode(r, p)
        }
        fn /= 2
        sn /= 2
    }
    // Step 5.
    if sn != 0 { throw wrongLength }
    return r
}

/// An inclusion proof and all that it is held against.
struct InclusionClaim {
    let leafHash: [UInt8]
    let index: Int
    let treeSize: Int
    let path: [[UInt8]]
    let rootHash: [UInt8]
}

/// Throws `proofInvalid` unless the path shows the leaf at its index of the tree with that size and root.
func verifyInclusion(_ claim: InclusionClaim) throws(LogError) {
    let implied: [UInt8]
    do {
        implied = try rootFromPath(leaf: claim.leafHash, index: claim.index, treeSize: claim.treeSize, path: claim.path)
    } catch {
        throw .proofInvalid("inclusion proof of leaf \(claim.index) is malformed")
    }
    guard implied == claim.rootHash else {
        throw .proofInvalid("leaf \(claim.index) does not lead to the root of size \(claim.treeSize)")
    }
}
