// Consistency proofs: an old tree is a prefix of a new one (RFC 6962, section 2.1.2; checked as in RFC 9162, section 2.1.4.2).
// Every tree extends the empty one, and itself, with a proof of no hashes.

/// Every complete subtree of the new tree whose hash the proof needs; `proveConsistency` reads exactly these, in this order.
/// Throws `malformed` when the old tree is the larger one.
func consistencyNodes(_ oldSize: Int, _ newSize: Int) throws(LogError) -> [Node] {
    try consistencyPath(oldSize, newSize).nodes
}

/// The consistency proof from one size to the other. Throws `malformed` when the old tree is the larger one.
func proveConsistency(_ oldSize: Int, _ newSize: Int, _ readHashes: ReadHashes) throws(LogError) -> [[UInt8]] {
    let path = try consistencyPath(oldSize, newSize)
    return try foldPath(path, try readHashes(path.nodes))
}

/// A consistency proof and the two trees it is held against.
struct ConsistencyClaim {
    let oldSize: Int
    let oldRoot: [UInt8]
    let newSize: Int
    let newRoot: [UInt8]
    let proof: [[UInt8]]

    fileprivate func refused(_ reason: String) -> LogError {
        .proofInvalid("consistency proof from size \(oldSize) to \(newSize): \(reason)")
    }
}

/// Throws `proofInvalid` unless the proof shows that the new root's tree starts with the old one's.
func verifyConsistency(_ claim: ConsistencyClaim) throws(LogError) {
    let oldSize = claim.oldSize
    let newSize = claim.newSize
    guard oldSize >= 0, oldSize <= newSize, newSize <= safeMax else { throw claim.refused("sizes do not fit") }
    if oldSize == 0 || oldSize == newSize {
        if !claim.proof.isEmpty { throw claim.refused("no hashes belong in it") }
        if oldSize == 0 && claim.oldRoot != emptyRoot { throw claim.refused("the empty root is another") }
        if oldSize == newSize && claim.oldRoot != claim.newRoot { throw claim.refused("one size has two roots") }
        if oldSize == 0 && claim.newRoot.count != hashOctets { throw claim.refused("the new root is not 32 octets") }
        return
    }
    let implied = try impliedRoots(claim)
    if implied.old != claim.oldRoot { throw claim.refused("it does not lead to the old root") }
    if implied.new != claim.newRoot { throw claim.refused("it does not lead to the new root") }
}

/// RFC 9162, section 2.1.4.2, for 0 < oldSize < newSize: the old and the new root as the proof has them.
private func impliedRoots(_ claim: ConsistencyClaim) throws(LogError) -> (old: [UInt8], new: [UInt8]) {
    // Steps 1 and 2. A complete old tree is itself the first node, and left out of the proof.
    if claim.proof.isEmpty { throw claim.refused("it is empty") }
    let hashes = isPowerOfTwo(claim.oldSize) ? [claim.oldRoot] + claim.proof : claim.proof
    guard hashes.allSatisfy({ $0.count == hashOctets }) else { throw claim.refused("a hash is not 32 octets") }
    // Steps 3 and 4. The numbers of both last leaves, then of the node that the first hash is.
    var fn = claim.oldSize - 1
    var sn = claim.newSize - 1
    while fn % 2 == 1 {
        fn /= 2
        sn /= 2
    }
    // Step 5.
    var fr = hashes[0]
    var sr = fr
    // Step 6.
    for c in hashes.dropFirst() {
        if sn == 0 { throw claim.refused("it has too many hashes") }
        if fn % 2 == 1 || fn == sn {
            fr = try hashNode(c, fr)
            sr = try hashNode(c, sr)
            while fn % 2 == 0 && fn != 0 {
                fn /= 2
                sn /= 2
            }
        } else {
            sr = try hashNode(sr, c)
        }
        fn /= 2
        sn /= 2
    }
    // Step 7; the caller compares the roots.
    if sn != 0 { throw claim.refused("it has too few hashes") }
    return (fr, sr)
}

/// The proof runs up from the largest complete subtree that ends where the old tree ends. When that is the whole old tree (its
/// size a power of two) the verifier knows its hash, otherwise it comes first.
private func consistencyPath(_ oldSize: Int, _ newSize: Int) throws(LogError) -> Path {
    try assertTreeSize(oldSize)
    try assertTreeSize(newSize)
    if oldSize > newSize { throw .malformed("old size \(oldSize) is above the new size \(newSize)") }
    if oldSize == 0 || oldSize == newSize { return Path(nodes: [], fold: 0..<0) }
    let start = lastSubtree(oldSize)
    let path = pathToRoot(start, newSize)
    if start.index == 0 { return path }
    return Path(nodes: [start] + path.nodes, fold: path.fold.lowerBound + 1..<path.fold.upperBound + 1)
}

private func lastSubtree(_ treeSize: Int) -> Node {
    let level = treeSize.trailingZeroBitCount
    return Node(level: level, index: treeSize >> level - 1)
}

private func isPowerOfTwo(_ size: Int) -> Bool { size & (size - 1) == 0 }
