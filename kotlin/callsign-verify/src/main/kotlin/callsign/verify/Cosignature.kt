/**
 * Cosignatures of witnesses (c2sp.org/tlog-cosignature), Ed25519 with a time (type 0x04): the witness has seen that this
 * checkpoint extends every one of the log that it had cosigned before. Other types are signatures of unknown keys.
 */
package callsign.verify

private const val COSIGNATURE_TYPE = 0x04

/**
 * Reads a witness's vkey. One of type 0x01 is taken as well, as Go's libraries do: the same key, under the id that its
 * cosignatures have. Throws `KEY_INVALID`.
 */
internal fun parseWitnessKey(vkey: String): VerifierKey {
    val key = parseTypedKey(vkey, setOf(COSIGNATURE_TYPE, ED25519_TYPE))
    return VerifierKey(key.name, keyIdOf(key.name, COSIGNATURE_TYPE, key.publicKey), key.publicKey)
}

/**
 * The time at which the witness cosigned this text, in POSIX seconds, by what follows the key id in its signature line;
 * null where it did not.
 */
internal fun cosignedAtSeconds(text: String, witness: VerifierKey, cosignature: ByteArray): Long? {
    if (cosignature.size != TIME_OCTETS + SIGNATURE_OCTETS) return null
    val seconds = uint64At(cosignature, 0).toLong()
    if (seconds !in 0..SAFE_MAX) return null
    val message = "cosignature/v1\ntime $seconds\n$text".toByteArray()
    val signature = cosignature.copyOfRange(TIME_OCTETS, cosignature.size)
    return seconds.takeIf { ed25519Verify(witness.publicKey, message, signature) }
}

private const val TIME_OCTETS = 8
private const val SIGNATURE_OCTETS = 64
