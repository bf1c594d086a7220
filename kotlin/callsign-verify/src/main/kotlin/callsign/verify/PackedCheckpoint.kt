/**
 * A checkpoint in the fewest octets that still prove that the log has signed it:
 *
 *     tree size u64 big-endian  root hash 32  key id 4  Ed25519 signature 64
 *
 * The origin is that of the log which both ends have pinned.
 */
package callsign.verify

import java.nio.ByteBuffer

/** Null where the log's own signature is not in the note. */
internal fun packCheckpoint(checkpoint: SignedCheckpoint): ByteArray? {
    val begin = lineOf(checkpoint.origin)
    // Witnesses have lines of another length.
    val signature = checkpoint.note.split('\n')
        .filter { it.startsWith(begin) }
        .map { decodeBase64(it.removePrefix(begin)) }
        .find { it.size == SIGNATURE_OCTETS } ?: return null
    val root = decodeBase64(checkpoint.rootHash)
    return ByteBuffer.allocate(PACKED_OCTETS).putLong(checkpoint.treeSize).put(root).put(signature).array()
}

/** The note, with the log's signature alone; null for octets of another form. Nothing is verified. */
internal fun readPackedCheckpoint(octets: ByteArray, origin: String): String? {
    if (octets.size != PACKED_OCTETS) return null
    val root = encodeBase64(octets.copyOfRange(ROOT_AT, SIGNATURE_AT))
    val signature = encodeBase64(octets.copyOfRange(SIGNATURE_AT, PACKED_OCTETS))
    return "$origin\n${uint64At(octets, 0)}\n$root\n\n${lineOf(origin)}$signature\n"
}

private fun lineOf(origin: String): String = "$SIGNATURE_START$origin "

private const val ROOT_AT = 8
private const val SIGNATURE_AT = ROOT_AT + HASH_OCTETS

/** In a signed note's line, for an Ed25519 key: 4 octets of key id, and the signature. */
private const val SIGNATURE_OCTETS = 68
private const val PACKED_OCTETS = SIGNATURE_AT + SIGNATURE_OCTETS
