/**
 * Proofs in the Merkle Patricia tree of `filippo.io/torchwood/mpt` v0.10; its head comment is the specification. The tree is a
 * map, and its hash proves a key's value, or the key's absence.
 *
 * - a leaf: SHA-256(0 || len(key) || key || len(value) || value), lengths as varints
 * - an inner node, where keys differ at bit B: SHA-256(1 || B || left || right), B as a varint; no node has one child
 * - the empty tree: SHA-256 of nothing
 *
 * A proof is the steps from the leaf to the root, each B and the sibling's hash. An absence proof begins with the key and value,
 * each with its length, of the leaf where the search for the absent key ends.
 */
package callsign.verify

/** A lookup's claim about a tree. [value] is null where the key is said to be absent. */
internal class PatriciaClaim(val root: ByteArray, val key: ByteArray, val value: ByteArray?, val proof: ByteArray)

internal fun patriciaLeafHash(key: ByteArray, value: ByteArray): ByteArray =
    sha256(LEAF, varint(key.size.toLong()), key, varint(value.size.toLong()), value)

/** Throws `MALFORMED` unless both hashes have 32 octets. */
internal fun patriciaNodeHash(bit: Long, left: ByteArray, right: ByteArray): ByteArray {
    if (left.size != HASH_OCTETS || right.size != HASH_OCTETS) throw malformed("hash of a child node is not 32 octets")
    return sha256(INNER, varint(bit), left, right)
}

/** The bit of a key at a position: beyond its end a zero octet and then only ones, so that no key is the beginning of another. */
internal fun keyBit(key: ByteArray, position: Long): Int {
    val at = position / 8
    if (at < key.size) return (key[at.toInt()].toInt() shr (7 - (position % 8).toInt())) and 1
    return if (at == key.size.toLong()) 0 else 1
}

/** Throws `PROOF_INVALID` unless the proof shows that the tree has the value under the key or, without a value, no such key. */
internal fun verifyPatricia(claim: PatriciaClaim) {
    if (claim.value == null && claim.proof.isEmpty()) {
        if (claim.root.contentEquals(EMPTY_ROOT)) return
        throw invalid("a tree with keys proves nothing by an empty proof")
    }
    val reader = ProofReader(claim.proof)
    val end = if (claim.value == null) readOther(reader, claim.key) else PatriciaPair(claim.key, claim.value)
    if (!reader.climb(claim.key, end).contentEquals(claim.root)) throw invalid("it does not lead to the root")
}

private class PatriciaPair(val key: ByteArray, val value: ByteArray)

private fun readOther(reader: ProofReader, key: ByteArray): PatriciaPair {
    val other = PatriciaPair(reader.readOctets(), reader.readOctets())
    if (other.key.contentEquals(key)) throw invalid("it is of the key that is said to be absent")
    return other
}

private class ProofReader(private val octets: ByteArray) {
    private var at = 0

    fun readOctets(): ByteArray = take(readVarint())

    /** The root above the leaf of [end], by the turns of [key], from which it may differ only where no step looks. */
    fun climb(key: ByteArray, end: PatriciaPair): ByteArray {
        var hash = patriciaLeafHash(end.key, end.value)
        var bitAbove = Long.MAX_VALUE
        while (at < octets.size) {
            val bit = readVarint()
            if (bit >= bitAbove) throw invalid("its steps are out of order")
            bitAbove = bit
            val sibling = take(HASH_OCTETS.toLong())
            val side = keyBit(key, bit)
            if (side != keyBit(end.key, bit)) throw invalid("it ends beside the way to the key")
            hash = if (side == 0) patriciaNodeHash(bit, hash, sibling) else patriciaNodeHash(bit, sibling, hash)
        }
        return hash
    }

    private fun take(length: Long): ByteArray {
        if (length > octets.size - at) throw invalid("it is cut off")
        val taken = octets.copyOfRange(at, at + length.toInt())
        at += length.toInt()
        return taken
    }

    /** Below 2^49: more is no proof that fits in memory. */
    private fun readVarint(): Long {
        var value = 0L
        for (shift in 0 until VARINT_OCTETS_MAX) {
            if (at == octets.size) throw invalid("it is cut off")
            val octet = octets[at++].toInt() and 0xff
            value = value or ((octet and 0x7f).toLong() shl (7 * shift))
            if (octet < 0x80) return value
        }
        throw invalid("a number in it is too long")
    }
}

private fun varint(value: Long): ByteArray {
    val octets = ByteArray(VARINT_OCTETS_MAX)
    var length = 0
    var rest = value
    while (rest >= 0x80) {
        octets[length++] = ((rest and 0x7f) or 0x80).toByte()
        rest = rest shr 7
    }
    octets[length++] = rest.toByte()
    return octets.copyOf(length)
}

private fun invalid(reason: String): LogException = proofInvalid("proof in the index: $reason")

private const val VARINT_OCTETS_MAX = 7
private val LEAF = byteArrayOf(0)
private val INNER = byteArrayOf(1)
