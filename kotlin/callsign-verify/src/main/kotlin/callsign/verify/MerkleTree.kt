/**
 * The Merkle tree of RFC 6962, section 2.1: SHA-256 with a first octet that keeps leaves and inner nodes apart, and the
 * shape of a tree. A tree is described by its complete subtrees: only their hashes never change.
 */
package callsign.verify

internal const val HASH_OCTETS: Int = 32

/** The root hash of the tree without entries: SHA-256 of nothing. */
internal val EMPTY_ROOT: ByteArray = sha256()

private val LEAF = byteArrayOf(0)
private val INNER = byteArrayOf(1)

/** The leaf hash of an entry: SHA-256(0x00 || entry). */
internal fun hashLeaf(entry: ByteArray): ByteArray = sha256(LEAF, entry)

/** The hash of an inner node: SHA-256(0x01 || left || right). Throws `MALFORMED` unless both have 32 octets. */
internal fun hashNode(left: ByteArray, right: ByteArray): ByteArray {
    if (left.size != HASH_OCTETS || right.size != HASH_OCTETS) throw malformed("hash of a child node is not 32 octets")
    return sha256(INNER, left, right)
}

/** The complete subtree over the leaves from index * 2^level up to, not including, (index + 1) * 2^level. */
internal data class Node(val level: Int, val index: Long)

/** Gives the hashes of nodes, in the order asked for. Every node asked for is complete in the tree in question. */
internal typealias ReadHashes = (List<Node>) -> List<ByteArray>

/** Throws `MALFORMED` unless [treeSize] is a number from 0 to 2^53 - 1. */
internal fun assertTreeSize(treeSize: Long) {
    if (treeSize !in 0..SAFE_MAX) throw malformed("tree size $treeSize is not a number from 0 to 2^53 - 1")
}

/** The complete subtrees a tree consists of, largest and leftmost first: one per bit that is set in the size. */
internal fun rootNodes(treeSize: Long): List<Node> {
    assertTreeSize(treeSize)
    return rangeNodes(0, treeSize, LEVEL_MAX)
}

/** The hash over subtrees that stand side by side, largest first: RFC 6962's root when they are [rootNodes]. */
internal fun foldRoots(hashes: List<ByteArray>): ByteArray =
    if (hashes.isEmpty()) EMPTY_ROOT else hashes.reduceRight { left, right -> hashNode(left, right) }

/** The root hash of the tree of that size. */
internal fun rootHash(treeSize: Long, readHashes: ReadHashes): ByteArray = foldRoots(readHashes(rootNodes(treeSize)))

/** The right edge of a tree, which grows: [roots] are the hashes of its [rootNodes]. */
internal class RightEdge(private var treeSize: Long, roots: List<ByteArray>) {
    private val roots = roots.toMutableList()

    fun append(leafHash: ByteArray) {
        var hash = leafHash
        var complete = treeSize
        while (complete % 2 == 1L) {
            hash = hashNode(roots.removeAt(roots.lastIndex), hash)
            complete /= 2
        }
        roots += hash
        treeSize++
    }

    fun rootHash(): ByteArray = foldRoots(roots)
}

/**
 * The nodes to read for the way from a node up to the root, in order. Those from [foldStart] up to, not including,
 * [foldEnd] fold into one hash: at most one sibling on the way is an incomplete subtree, the right end of the tree.
 */
internal class Path(val nodes: List<Node>, val foldStart: Int, val foldEnd: Int)

/** The siblings on the way from a node that is complete in the tree up to the root, lowest first. */
internal fun pathToRoot(node: Node, treeSize: Long): Path {
    val nodes = mutableListOf<Node>()
    var foldStart = 0
    var foldEnd = 0
    var height = node.level
    var position = node.index
    var leaves = 1L shl node.level
    while (leaves < treeSize) {
        val sibling = position xor 1
        if ((sibling + 1) * leaves <= treeSize) {
            nodes += Node(height, sibling)
        } else if (sibling * leaves < treeSize) {
            foldStart = nodes.size
            nodes += rangeNodes(sibling * leaves, treeSize, height - 1)
            foldEnd = nodes.size
        }
        // Otherwise nothing stands to the right: at this height the node is its own parent.
        height++
        position /= 2
        leaves *= 2
    }
    return Path(nodes, foldStart, foldEnd)
}

/** The hashes of `path.nodes` as a proof gives them, one per sibling. */
internal fun foldPath(path: Path, hashes: List<ByteArray>): List<ByteArray> {
    if (path.foldStart == path.foldEnd) return hashes
    val folded = foldRoots(hashes.subList(path.foldStart, path.foldEnd))
    return hashes.take(path.foldStart) + listOf(folded) + hashes.drop(path.foldEnd)
}

/**
 * The complete subtrees of the leaves from [start] to [end], largest first, none of them above [levelMax]. Like every
 * subtree's start, [start] is a multiple of the smallest power of two that is not below `end - start`.
 */
private fun rangeNodes(start: Long, end: Long, levelMax: Int): List<Node> {
    val nodes = mutableListOf<Node>()
    var from = start
    var level = levelMax
    while (from < end) {
        val leaves = 1L shl level
        if (leaves <= end - from) {
            nodes += Node(level, from / leaves)
            from += leaves
        }
        level--
    }
    return nodes
}

/** The level of the largest complete subtree below 2^53 leaves. */
private const val LEVEL_MAX = 52
