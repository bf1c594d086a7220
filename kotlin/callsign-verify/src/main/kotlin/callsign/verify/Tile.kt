/**
 * Hash tiles (c2sp.org/tlog-tiles): their names, their width in a tree, and the hashes in them. A tile of level L holds
 * up to 256 hashes side by side, those of the complete subtrees of level 8 * L.
 */
package callsign.verify

/** [level] is 0 to 63. [width] counts its hashes: 1 to 256, 256 = full. */
public data class Tile(val level: Int, val index: Long, val width: Int)

private const val TILE_HEIGHT = 8
internal const val TILE_WIDTH: Int = 256
private const val TILE_LEVEL_MAX = 63

/** The tile's path without a leading slash, `tile/0/x001/x234/067.p/5`. Throws `MALFORMED` when there is no such. */
internal fun formatTilePath(tile: Tile): String {
    if (tile.level !in 0..TILE_LEVEL_MAX || tile.width !in 1..TILE_WIDTH || tile.index !in 0..SAFE_MAX)
        throw malformed("no tile has level ${tile.level}, index ${tile.index} and width ${tile.width}")
    return "tile/${tile.level}/${placeOf(tile.index, tile.width)}"
}

/** [width] counts the entries of the bundle, those of the tile of level 0 with this [index]: 1 to 256, 256 = full. */
internal data class EntryBundle(val index: Long, val width: Int)

/** The bundle's path without a leading slash, `tile/entries/x001/067.p/5`. */
internal fun formatBundlePath(bundle: EntryBundle): String = "tile/entries/${placeOf(bundle.index, bundle.width)}"

/** The entries of a bundle. Throws `MALFORMED` when it ends inside an entry or holds more than 256. */
internal fun parseBundle(octets: ByteArray): List<ByteArray> {
    val entries = mutableListOf<ByteArray>()
    var at = 0
    while (at < octets.size) {
        val start = at + 2
        val length = if (start > octets.size) 0 else uint16At(octets, at)
        if (start + length > octets.size) throw malformed("bundle ends inside the entry at octet $at")
        entries += octets.copyOfRange(start, start + length)
        at = start + length
    }
    if (entries.size > TILE_WIDTH) throw malformed("bundle of ${entries.size} entries exceeds $TILE_WIDTH")
    return entries
}

private fun placeOf(index: Long, width: Int): String {
    var groups = threeDigits(index % 1000)
    var rest = index / 1000
    while (rest > 0) {
        groups = "x${threeDigits(rest % 1000)}/$groups"
        rest /= 1000
    }
    return if (width == TILE_WIDTH) groups else "$groups.p/$width"
}

/** The tile's width in a tree of [treeSize]: 256 when full, 0 when the tree does not reach it. */
internal fun tileWidth(level: Int, index: Long, treeSize: Long): Int {
    // Complete subtrees of 256^level leaves. From level 8 on no tree below 2^53 has one.
    val hashes = if (level >= 8) 0 else treeSize shr (TILE_HEIGHT * level)
    return (hashes - index * TILE_WIDTH).coerceIn(0, TILE_WIDTH.toLong()).toInt()
}

/** The part of a hash tile that a node covers: its positions from [start] up to, not including, [end]. */
internal class TileRange(val level: Int, val index: Long, val start: Int, val end: Int)

/** Where the hash of a node comes from. One position where the hash is stored as it is. */
internal fun tileOfNode(node: Node): TileRange {
    val covered = 1 shl (node.level % TILE_HEIGHT)
    val perTile = TILE_WIDTH / covered
    val start = (node.index % perTile).toInt() * covered
    return TileRange(node.level / TILE_HEIGHT, node.index / perTile, start, start + covered)
}

/**
 * The hash of a node out of the octets of its tile, which may be partial as long as it reaches over the node. Throws
 * `MALFORMED` when the tile is too narrow.
 */
internal fun hashInTile(tile: ByteArray, node: Node): ByteArray {
    val range = tileOfNode(node)
    if (tile.size < range.end * HASH_OCTETS)
        throw malformed("tile of ${tile.size} octets does not reach position ${range.end}")
    var hashes = (range.start until range.end).map { tile.copyOfRange(it * HASH_OCTETS, (it + 1) * HASH_OCTETS) }
    while (hashes.size > 1) hashes = hashes.chunked(2) { (left, right) -> hashNode(left, right) }
    return hashes.single()
}

private fun threeDigits(value: Long): String = value.toString().padStart(3, '0')
