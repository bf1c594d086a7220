/** Checkpoints (c2sp.org/tlog-checkpoint): the signed note by which a log commits to a tree size and a root hash. */
package callsign.verify

/** A checkpoint's content. [extensions] are lines without their newline. */
internal class Checkpoint(
    val origin: String,
    val treeSize: Long,
    val rootHash: ByteArray,
    val extensions: List<String>,
)

/** Longer origins are refused by other readers, and cannot be cosigned. */
private const val ORIGIN_OCTETS_MAX = 255

/**
 * Reads the text of a checkpoint, without its signatures. Throws `MALFORMED` for everything the specification does not
 * allow and for sizes from 2^53 on.
 */
internal fun parseCheckpoint(text: String): Checkpoint {
    if (!text.endsWith('\n') || !isNoteText(text)) throw malformed("checkpoint is not lines of text")
    val lines = text.dropLast(1).split('\n')
    if (lines.size < 3) throw malformed("checkpoint has not three lines")
    val (origin, size, root) = lines
    val originOctets = origin.toByteArray().size
    if (originOctets !in 1..ORIGIN_OCTETS_MAX) throw malformed("checkpoint origin has $originOctets octets")
    val extensions = lines.drop(3)
    if ("" in extensions) throw malformed("checkpoint has an empty extension line")
    val rootHash = decodeBase64(root)
    if (rootHash.size != HASH_OCTETS) throw malformed("checkpoint root hash has ${rootHash.size} octets, not 32")
    return Checkpoint(origin, parseDecimal(size), rootHash, extensions)
}
