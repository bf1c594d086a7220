/**
 * The leaves of an index's output log, and the keys and values of its map. A leaf says that the map over the entries of a
 * checkpoint of the log has a root: `{"input_log_cp": base64, "index_root": [32 numbers]}`, as transparency.dev's verifiable index
 * has it.
 */
package callsign.verify

import java.nio.ByteBuffer

/** [inputCheckpoint] is a signed note of the log, [root] the root of the map over all entries of its tree. */
internal class IndexLeaf(val inputCheckpoint: String, val root: ByteArray)

/** The origin of the output log of a log's index. */
internal fun indexOriginOf(origin: String): String = "$origin/index"

/** The key of all entries under a VRF hash, in base64: SHA-256 of that text. */
internal fun indexKeyOf(vrfHash: String): ByteArray = sha256(vrfHash.toByteArray())

/** The value that the map has for these leaves of the log, which ascend. */
internal fun indexValueOf(indexes: List<Long>): ByteArray {
    val octets = ByteBuffer.allocate(8 * indexes.size)
    indexes.forEach(octets::putLong)
    return sha256(octets.array())
}

/** Throws `MALFORMED` for octets that no index writes. */
internal fun parseIndexLeaf(octets: ByteArray): IndexLeaf {
    if (octets.size > INDEX_LEAF_OCTETS_MAX) throw malformedLeaf("is too long")
    val found = LEAF.matchEntire(octets.toString(Charsets.ISO_8859_1)) ?: throw malformedLeaf("is not of its form")
    val (input, numbers) = found.destructured
    val root = numbers.split(',').map { it.toIntOrNull() ?: -1 }
    if (root.size != HASH_OCTETS || root.any { it !in 0..255 } || root.joinToString(",") != numbers)
        throw malformedLeaf("has a root that is not 32 octets")
    return IndexLeaf(decodeUtf8(decodeBase64(input)), root.map(Int::toByte).toByteArray())
}

private fun malformedLeaf(reason: String): LogException = malformed("leaf of the index $reason")

/** An entry of a log of this kind has at most as many. */
internal const val INDEX_LEAF_OCTETS_MAX: Int = 65_535
private val LEAF = Regex("""\{"input_log_cp":"([A-Za-z0-9+/=]*)","index_root":\[([0-9,]*)]\}""")
