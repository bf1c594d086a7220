/**
 * Whether an old tree is the beginning of a new one, found out from the log's hash tiles (c2sp.org/tlog-tiles) and from
 * nothing else. What tiles say counts only once it leads to the signed root of the new tree.
 */
package callsign.verify

import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope

/** Gives the octets of a tile of the new tree, in the width asked for. Throws as it likes when it cannot. */
public fun interface FetchTile {
    public suspend fun fetch(tile: Tile): ByteArray
}

/** The verdict of [consistencyFromTiles]. */
public sealed interface TileConsistency {
    public data object Consistent : TileConsistency

    /**
     * [check] is `tiles` when what was fetched does not lead to the new root, so that nothing is known of the old tree. It is
     * `consistency` when it does, and the old tree is not what the new one begins with: the log has rewritten its history.
     */
    public data class Inconsistent(val check: Check, val detail: String) : TileConsistency
}

/**
 * Checks that the tree of [older] is the beginning of [newer]'s tree, both with signatures that held. Fetches each tile that
 * the proof needs once, at most a dozen, side by side, and none for trees of one size. Throws `MALFORMED` when [older] is
 * the larger one, and whatever [fetchTile] throws.
 */
public suspend fun consistencyFromTiles(
    fetchTile: FetchTile,
    older: SignedCheckpoint,
    newer: SignedCheckpoint,
): TileConsistency {
    val proofNodes = consistencyNodes(older.treeSize, newer.treeSize)
    if (older.treeSize == 0L || older.treeSize == newer.treeSize) return compareWithoutTiles(older, newer)
    val tiles = fetchTiles(fetchTile, rootNodes(older.treeSize) + proofNodes, newer.treeSize)
    val tooShort = tiles.entries.find { (tile, octets) -> octets.size != tile.width * HASH_OCTETS }
    if (tooShort != null) {
        val (tile, octets) = tooShort
        val detail = "tile ${tile.index} of level ${tile.level} has ${octets.size} octets instead of ${tile.width} hashes"
        return TileConsistency.Inconsistent(Check.TILES, detail)
    }
    return compareInTiles(tiles, older, newer)
}

private fun compareWithoutTiles(older: SignedCheckpoint, newer: SignedCheckpoint): TileConsistency {
    if (older.treeSize == 0L && older.rootHash != encodeBase64(EMPTY_ROOT))
        return TileConsistency.Inconsistent(Check.CONSISTENCY, "the tree without entries has another root")
    if (older.treeSize == newer.treeSize && older.rootHash != newer.rootHash)
        return TileConsistency.Inconsistent(Check.CONSISTENCY, "tree size ${older.treeSize} has two roots")
    return TileConsistency.Consistent
}

/** The old root is computed from the tiles, not assumed, to distinguish a bad tile from a bad log. */
private fun compareInTiles(
    tiles: Map<Tile, ByteArray>,
    older: SignedCheckpoint,
    newer: SignedCheckpoint,
): TileConsistency {
    val readHashes = hashReader(tiles, newer.treeSize)
    val oldRoot = rootHash(older.treeSize, readHashes)
    val proof = proveConsistency(older.treeSize, newer.treeSize, readHashes)
    val newRoot = decodeBase64(newer.rootHash)
    try {
        verifyConsistency(ConsistencyClaim(older.treeSize, oldRoot, newer.treeSize, newRoot, proof))
    } catch (_: LogException) {
        val detail = "the tiles do not lead to the root of size ${newer.treeSize}"
        return TileConsistency.Inconsistent(Check.TILES, detail)
    }
    if (oldRoot.contentEquals(decodeBase64(older.rootHash))) return TileConsistency.Consistent
    val detail = "the tree of size ${newer.treeSize} does not begin with that of size ${older.treeSize}"
    return TileConsistency.Inconsistent(Check.CONSISTENCY, detail)
}

/** The tiles that hold [nodes], each as wide as a tree of [treeSize] has it. */
internal suspend fun fetchTiles(fetchTile: FetchTile, nodes: List<Node>, treeSize: Long): Map<Tile, ByteArray> =
    coroutineScope {
        val wanted = nodes.map { tileFor(it, treeSize) }.distinct()
        val fetched = wanted.map { tile -> async { fetchTile.fetch(tile) } }.awaitAll()
        wanted.zip(fetched).toMap()
    }

internal fun hashReader(tiles: Map<Tile, ByteArray>, treeSize: Long): ReadHashes = { nodes ->
    nodes.map { node -> hashInTile(tiles.getValue(tileFor(node, treeSize)), node) }
}

/** The tile that holds the node, as wide as a tree of [treeSize] has it: only that width is sure to be there. */
private fun tileFor(node: Node, treeSize: Long): Tile {
    val range = tileOfNode(node)
    return Tile(range.level, range.index, tileWidth(range.level, range.index, treeSize))
}
