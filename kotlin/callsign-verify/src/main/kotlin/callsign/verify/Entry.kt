/**
 * The entry of this log, `<vrfHash base64>\n<publicKey base64>\n`: an identity hash bound to a device's public key. The
 * form is fixed for the life of a log.
 */
package callsign.verify

/** The hash output of c2sp.org/vrf-r255, never truncated. */
internal const val VRF_HASH_OCTETS: Int = 64

/**
 * The octets of an entry, 134 for a key of 32 octets. Throws `MALFORMED` unless the hash has 64 octets and the key is
 * non-empty canonical base64.
 */
internal fun formatEntry(vrfHash: ByteArray, publicKey: String): ByteArray {
    if (vrfHash.size != VRF_HASH_OCTETS) throw malformed("VRF hash has ${vrfHash.size} octets, not $VRF_HASH_OCTETS")
    if (publicKey.isEmpty() || !isCanonicalBase64(publicKey)) throw malformed("public key is not canonical base64")
    return "${encodeBase64(vrfHash)}\n$publicKey\n".toByteArray()
}
