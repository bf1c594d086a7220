/**
 * The text of an inclusion proof (c2sp.org/tlog-proof, version 1): index, path and the whole checkpoint it leads to. Go's
 * reader takes more (carriage returns, leading zeros, an empty `extra`).
 */
package callsign.verify

/**
 * [extra] is application data that nothing authenticates: here the 80 octets of the VRF proof, to be verified by itself.
 * [path] runs from the leaf's sibling up. [checkpoint] is a signed note, kept as it was.
 */
internal class TlogProof(
    val extra: ByteArray?,
    val index: Long,
    val path: List<ByteArray>,
    val checkpoint: String,
)

/**
 * Reads the text of a proof. Nothing is verified, and the checkpoint is not looked into. Throws `MALFORMED` for any
 * deviation from the specification, an index from 2^53 on, above 63 hashes, or 48 KiB of extra data.
 */
internal fun parseProof(text: String): TlogProof {
    // The checkpoint has a blank line of its own, so the first one ends the proof.
    val end = text.indexOf("\n\n")
    if (end < 0) throw malformed("proof has no blank line")
    val checkpoint = text.substring(end + 2)
    if (checkpoint.startsWith('\n') || !checkpoint.endsWith('\n'))
        throw malformed("proof checkpoint is not lines of text")
    val lines = text.substring(0, end).split('\n')
    if (lines.first() != PROOF_HEADER) throw malformed("proof does not start with $PROOF_HEADER")
    val extraLine = lines.getOrNull(1)?.takeIf { it.startsWith(EXTRA_START) }
    val extra = extraLine?.let { decodeBase64(it.removePrefix(EXTRA_START)) }
    val rest = lines.drop(if (extra == null) 1 else 2)
    val indexLine = rest.firstOrNull()
    if (indexLine == null || !indexLine.startsWith(INDEX_START)) throw malformed("proof has no index where it belongs")
    val index = parseDecimal(indexLine.removePrefix(INDEX_START))
    val hashes = rest.drop(1)
    if (hashes.size > PATH_HASHES_MAX) throw malformed("proof path has ${hashes.size} hashes")
    val path = hashes.map(::parseHash)
    if (extra != null && extra.size !in 1..EXTRA_OCTETS_MAX) throw malformed("proof extra data has ${extra.size} octets")
    return TlogProof(extra, index, path, checkpoint)
}

private fun parseHash(line: String): ByteArray {
    val hash = decodeBase64(line)
    if (hash.size != HASH_OCTETS) throw malformed("proof path has a hash that is not 32 octets")
    return hash
}

/** The first line of a proof, which names its form and version. */
private const val PROOF_HEADER = "c2sp.org/tlog-proof@v1"
private const val EXTRA_START = "extra "
private const val INDEX_START = "index "

/** No tree the C2SP protocols know is deeper. */
private const val PATH_HASHES_MAX = 63

/** Go's reader refuses lines above 64 KiB, which is this in base64. */
private const val EXTRA_OCTETS_MAX = 48 * 1024
