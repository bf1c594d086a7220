// The Merkle tree of RFC 6962, section 2.1: SHA-256 with a first octet that keeps leaves and inner nodes apart, and the shape
// of a tree. A tree is described by its complete subtrees: only their hashes never change.

package let hashOctets = 32

/// The root hash of the tree without entries: SHA-256 of nothing.
let emptyRoot = sha256()

/// The leaf hash of an entry: SHA-256(0x00 || entry).
func hashLeaf(_ entry: [UInt8]) -> [UInt8] { sha256([0], entry) }

/// The hash of an inner node: SHA-256(0x01 || left || right). Throws `malformed` unless both have 32 octets.
func hashNode(_ left: [UInt8], _ right: [UInt8]) throws(LogError) -> [UInt8] {
    guard left.count == hashOctets, right.count == hashOctets else { throw .malformed("hash of a child node is not 32 octets") }
    return sha256([1], left, right)
}

/// The complete subtree over the leaves from index * 2^level up to, not including, (index + 1) * 2^level.
struct Node: Sendable, Equatable {
    let level: Int
    let index: Int
}

/// Gives the hashes of nodes, in the order asked for. Every node asked for is complete in the tree in question.
typealias ReadHashes = ([Node]) throws(LogError) -> [[UInt8]]

/// Throws `malformed` unless the size is a number from 0 to 2^53 - 1.
func assertTreeSize(_ treeSize: Int) throws(LogError) {
    guard (0...safeMax).contains(treeSize) else {
        throw .malformed("tree size \(treeSize) is not a number from 0 to 2^53 - 1")
    }
}

/// The complete subtrees a tree consists of, largest and leftmost first: one per bit that is set in the size.
func rootNodes(_ treeSize: Int) throws(LogError) -> [Node] {
    try assertTreeSize(treeSize)
    return rangeNodes(from: 0, to: treeSize, levelMax: levelMax)
}

/// The hash over subtrees that stand side by side, largest first: RFC 6962's root when they are those of `rootNodes`.
func foldRoots(_ hashes: some BidirectionalCollection<[UInt8]>) throws(LogError) -> [UInt8] {
    guard var folded = hashes.last else { return emptyRoot }
    for left in hashes.dropLast().reversed() { folded = try hashNode(left, folded) }
    return folded
}

/// The root hash of the tree of that size.
func rootHash(_ treeSize: Int, _ readHashes: ReadHashes) throws(LogError) -> [UInt8] {
    try foldRoots(try readHashes(try rootNodes(treeSize)))
}

/// The right edge of a tree, which grows: `roots` are the hashes of its `rootNodes`.
struct RightEdge {
    private var treeSize: Int
    private var roots: [[UInt8]]

    init(treeSize: Int, roots: [[UInt8]]) {
        self.treeSize = treeSize
        self.roots = roots
    }

    mutating func append(_ leafHash: [UInt8]) throws(LogError) {
        var hash = leafHash
        var complete = treeSize
        while complete % 2 == 1 {
            hash = try hashNode(roots.removeLast(), hash)
            complete /= 2
        }
        roots.append(hash)
        treeSize += 1
    }

    func rootHash() throws(LogError) -> [UInt8] { try foldRoots(roots) }
}

/// The nodes to read for the way from a node up to the root, in order. Those at the positions `fold` fold into one hash: at
/// most one sibling on the way is an incomplete subtree, the right end of the tree.
struct Path {
    let nodes: [Node]
    let fold: Range<Int>
}

/// The siblings on the way from a node that is complete in the tree up to the root, lowest first.
func pathToRoot(_ node: Node, _ treeSize: Int) -> Path {
    var nodes: [Node] = []
    var fold = 0..<0
    var height = node.level
    var position = node.index
    var leaves = 1 << node.level
    while leaves < treeSize {
        let sibling = position ^ 1
        if (sibling + 1) * leaves <= treeSize {
            nodes.append(Node(level: height, index: sibling))
        } else if sibling * leaves < treeSize {
            let start = nodes.count
            nodes += rangeNodes(from: sibling * leaves, to: treeSize, levelMax: height - 1)
            fold = start..<nodes.count
        }
        // Otherwise nothing stands to the right: at this height the node is its own parent.
        height += 1
        position /= 2
        leaves *= 2
    }
    return Path(nodes: nodes, fold: fold)
}

/// The hashes of `path.nodes` as a proof gives them, one per sibling.
func foldPath(_ path: Path, _ hashes: [[UInt8]]) throws(LogError) -> [[UInt8]] {
    if path.fold.isEmpty { return hashes }
    return hashes[..<path.fold.lowerBound] + [try foldRoots(hashes[path.fold])] + hashes[path.fold.upperBound...]
}

/// The complete subtrees of the leaves from `start` to `end`, largest first, none of them above `levelMax`. Like every subtree's
/// start, `start` is a multiple of the smallest power of two that is not below `end - start`.
private func rangeNodes(from start: Int, to end: Int, levelMax: Int) -> [Node] {
    var nodes: [Node] = []
    var from = start
    var level = levelMax
    while from < end {
        let leaves = 1 << level
        if leaves <= end - from {
            nodes.append(Node(level: level, index: from / leaves))
            from += leaves
        }
        level -= 1
    }
    return nodes
}

/// The level of the largest complete subtree below 2^53 leaves.
private let levelMax = 52
