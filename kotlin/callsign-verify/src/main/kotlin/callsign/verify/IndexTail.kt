/**
 * The tail of an answer: what the log has appended between the checkpoint of the index's newest leaf and the answer's. The entries
 * are read from the log's bundles and count once they lead from the one signed root to the other.
 */
package callsign.verify

import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/** Where tiles and entry bundles of one log are read from; both throw [NoAnswer]. */
internal class TailSource(val tiles: FetchTile, val bundles: suspend (EntryBundle) -> ByteArray)

/** What became of reading a tail: the leaves in it by the VRF hash of their entries, base64; ascending. */
internal class IndexTail(private val indexes: Map<String, List<Long>>) {
    fun under(vrfHash: String): List<Long> = indexes[vrfHash].orEmpty()
}

/** Asks [sources] in turn until one gives the entries. The last tails that were read are kept, since many lookups share one. */
internal class IndexTails(private val sources: List<TailSource>) {
    private class ReadTail(val older: SignedCheckpoint, val newer: SignedCheckpoint, val tail: IndexTail) {
        fun isBetween(one: SignedCheckpoint, other: SignedCheckpoint): Boolean =
            older.treeSize == one.treeSize &&
                older.rootHash == one.rootHash &&
                newer.treeSize == other.treeSize &&
                newer.rootHash == other.rootHash
    }

    private val turn = Mutex()
    private val read = Remembered<ReadTail>()

    /** The entries of [newer] that [older] does not have: at most [TAIL_MAX]. Open at `tiles` where no source has them. */
    suspend fun read(older: SignedCheckpoint, newer: SignedCheckpoint): Fitting<IndexTail> = turn.withLock {
        read.find { it.isBetween(older, newer) }?.let { return Fitting.Held(it.tail) }
        var detail: String? = null
        for (source in sources) {
            val found = try {
                tailFrom(source, older, newer)
            } catch (error: NoAnswer) {
                if (detail == null) detail = error.message
                continue
            } catch (error: LogException) {
                if (detail == null) detail = error.message
                continue
            }
            read.keep(ReadTail(older, newer, found))
            return Fitting.Held(found)
        }
        Fitting.Open(Unanswered("the newest entries can not be read: $detail", check = Check.TILES))
    }

    companion object {
        const val TAIL_MAX = 4_096
    }
}

/** Throws `MALFORMED` for tiles and bundles that are not of their form, or do not lead to the two roots. */
private suspend fun tailFrom(source: TailSource, older: SignedCheckpoint, newer: SignedCheckpoint): IndexTail {
    val (tiles, entries) = coroutineScope {
        val tiles = async { fetchTiles(source.tiles, rootNodes(older.treeSize), newer.treeSize) }
        val entries = async { fetchEntries(source.bundles, older.treeSize, newer.treeSize) }
        tiles.await() to entries.await()
    }
    val edge = RightEdge(older.treeSize, hashReader(tiles, newer.treeSize)(rootNodes(older.treeSize)))
    assertRoot(edge, older)
    entries.forEach { edge.append(hashLeaf(it)) }
    assertRoot(edge, newer)
    val indexes = HashMap<String, MutableList<Long>>()
    entries.forEachIndexed { at, entry -> indexes.getOrPut(hashOf(entry), ::mutableListOf) += older.treeSize + at }
    return IndexTail(indexes)
}

/** The entries from [start] up to, not including, [treeSize]. */
private suspend fun fetchEntries(
    fetch: suspend (EntryBundle) -> ByteArray,
    start: Long,
    treeSize: Long,
): List<ByteArray> = coroutineScope {
    val first = start / TILE_WIDTH
    val bundles = (first..(treeSize - 1) / TILE_WIDTH).map { EntryBundle(it, tileWidth(0, it, treeSize)) }
    val entries = bundles.map { bundle -> async { entriesOf(bundle, fetch(bundle)) } }.awaitAll().flatten()
    entries.drop((start - first * TILE_WIDTH).toInt())
}

/** A full bundle in place of a partial one has more. */
private fun entriesOf(bundle: EntryBundle, octets: ByteArray): List<ByteArray> {
    val entries = parseBundle(octets)
    if (entries.size < bundle.width)
        throw malformed("bundle ${bundle.index} has ${entries.size} entries instead of ${bundle.width}")
    return entries.take(bundle.width)
}

private fun assertRoot(edge: RightEdge, checkpoint: SignedCheckpoint) {
    if (encodeBase64(edge.rootHash()) != checkpoint.rootHash)
        throw malformed("they do not lead to the root of size ${checkpoint.treeSize}")
}

/** An entry of another form is under no hash. */
private fun hashOf(entry: ByteArray): String = entry.decodeToString().substringBefore('\n')
