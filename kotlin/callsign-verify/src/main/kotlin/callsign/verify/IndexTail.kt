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

/** Gives the entries of a bundle, as many as asked for. Throws [NoAnswer]. */
internal fun interface FetchEntries {
    suspend fun fetch(bundle: EntryBundle): List<ByteArray>
}

/** Where tiles and entries of one log are read from. */
internal class TailSource(val tiles: FetchTile, val entries: FetchEntries)

/** The leaves of a tail by the VRF hash of their entries, base64. */
internal class IndexTail(private val indexes: Map<String, List<Long>>) {
    /** Ascending. */
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

    /**
     * The entries of [newer] that [older] does not have: at least one, at most [ENTRIES_MAX]. Open at `tiles` where no source has
     * them.
     */
    suspend fun read(older: SignedCheckpoint, newer: SignedCheckpoint): Fitting<IndexTail> = turn.withLock {
        read.find { it.isBetween(older, newer) }?.let { return Fitting.Held(it.tail) }
        var detail: String? = null
        for (source in sources) {
            val found = try {
                tailFrom(source, older, newer)
            } catch (error: NoAnswer) {
                if (detail == null) detail = error.message
                continue
            }
            if (found == null) {
                if (detail == null) detail = "they do not lead from tree size ${older.treeSize} to ${newer.treeSize}"
                continue
            }
            read.keep(ReadTail(older, newer, found))
            return Fitting.Held(found)
        }
        Fitting.Open(Unanswered(detail.orEmpty(), check = Check.TILES))
    }

    companion object {
        /** Some 600 kB, of keys as apps have them: an index that is further behind does not do its work. */
        const val ENTRIES_MAX = 4_096
    }
}

/** Null where tiles and entries do not lead from the one root to the other. */
private suspend fun tailFrom(source: TailSource, older: SignedCheckpoint, newer: SignedCheckpoint): IndexTail? {
    val edgeNodes = rootNodes(older.treeSize)
    val (tiles, entries) = coroutineScope {
        val tiles = async { fetchTiles(source.tiles, edgeNodes, newer.treeSize) }
        val entries = async { fetchEntries(source.entries, older.treeSize, newer.treeSize) }
        tiles.await() to entries.await()
    }
    val edge = RightEdge(older.treeSize, hashReader(tiles, newer.treeSize)(edgeNodes))
    if (!leadsTo(edge, older)) return null
    entries.forEach { edge.append(hashLeaf(it)) }
    if (!leadsTo(edge, newer)) return null
    val indexes = HashMap<String, MutableList<Long>>()
    entries.forEachIndexed { at, entry -> indexes.getOrPut(hashOf(entry), ::mutableListOf) += older.treeSize + at }
    return IndexTail(indexes)
}

/** The entries from [start] up to, not including, [treeSize]. */
private suspend fun fetchEntries(
    fetchEntries: FetchEntries,
    start: Long,
    treeSize: Long,
): List<ByteArray> = coroutineScope {
    val first = start / TILE_WIDTH
    val bundles = (first..(treeSize - 1) / TILE_WIDTH).map { EntryBundle(it, tileWidth(0, it, treeSize)) }
    val entries = bundles.map { bundle -> async { fetchEntries.fetch(bundle) } }.awaitAll().flatten()
    entries.drop((start - first * TILE_WIDTH).toInt())
}

private fun leadsTo(edge: RightEdge, checkpoint: SignedCheckpoint): Boolean =
    encodeBase64(edge.rootHash()) == checkpoint.rootHash

/** The text that an entry begins with, and that an index has it under, whatever the log lets follow: 64 octets in base64. */
private fun hashOf(entry: ByteArray): String = String(entry.copyOf(minOf(88, entry.size)), Charsets.ISO_8859_1)
