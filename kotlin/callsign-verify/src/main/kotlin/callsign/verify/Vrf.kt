/**
 * Verification of the VRF that names a device in the log: c2sp.org/vrf-r255, which is ECVRF-RISTRETTO255-SHA512 in the
 * terms of RFC 9381, and names are its own. All integers are little-endian. Everything here is public.
 */
package callsign.verify

import cafe.cryptography.curve25519.CompressedRistretto
import cafe.cryptography.curve25519.Constants
import cafe.cryptography.curve25519.InvalidEncodingException
import cafe.cryptography.curve25519.RistrettoElement
import cafe.cryptography.curve25519.Scalar

private const val VRF_KEY_OCTETS = 32

/** Gamma (32), c (16), s (32). */
private const val VRF_PROOF_OCTETS = 80
private const val GAMMA_OCTETS = 32
private const val CHALLENGE_OCTETS = 16

/** The suite string that every hash of this VRF begins with. */
private val SUITE: ByteArray = byteArrayOf(-1) + "c2sp.org/vrf-r255".toByteArray()

/** Octets after the suite string in each hash (RFC 9381, section 5); [BACK] ends the last two. */
private val ENCODE_TO_GROUP = byteArrayOf(0x82.toByte())
private val CHALLENGE = byteArrayOf(0x02)
private val PROOF_TO_HASH = byteArrayOf(0x03)
private val BACK = byteArrayOf(0x00)

/** The VRF input of one device: ASCII `<userID>_<deviceID>`, both decimal without leading zeros. */
internal fun vrfInput(userId: ULong, deviceId: ULong): ByteArray = "${userId}_$deviceId".toByteArray()

/**
 * The public key in standard base64. Throws `KEY_INVALID` unless it is the canonical encoding of a group element other
 * than the identity, under which anyone can make proofs.
 */
internal fun parseVrfPublicKey(base64: String): ByteArray {
    val publicKey = try {
        decodeBase64(base64)
    } catch (_: LogException) {
        throw keyInvalid("vrf public key is not base64")
    }
    decodePublicKey(publicKey)
    return publicKey
}

/**
 * The VRF hash beta of [input] under [publicKey], 64 octets, once [proof] shows it (ECVRF_verify with validate_key, RFC
 * 9381, section 5.3). Throws `KEY_INVALID` when the key is not a canonical element or is the identity, and
 * `PROOF_INVALID` when the proof has another length, does not decode or does not hold.
 */
internal fun verifyVrf(publicKey: ByteArray, input: ByteArray, proof: ByteArray): ByteArray {
    // 1. to 3. Y, which validate_key refuses when it is the identity.
    val y = decodePublicKey(publicKey)
    // 4. to 6. Gamma, c and s.
    if (proof.size != VRF_PROOF_OCTETS) throw proofInvalid("vrf proof of ${proof.size} octets, not $VRF_PROOF_OCTETS")
    val gammaOctets = proof.copyOf(GAMMA_OCTETS)
    val gamma = elementOrNull(gammaOctets) ?: throw proofInvalid("vrf proof holds no group element")
    val challenge = proof.copyOfRange(GAMMA_OCTETS, GAMMA_OCTETS + CHALLENGE_OCTETS)
    val sOctets = proof.copyOfRange(GAMMA_OCTETS + CHALLENGE_OCTETS, VRF_PROOF_OCTETS)
    // s + q satisfies the same equations; letting it pass would give one input two proofs.
    if (unsignedOfLittleEndian(sOctets) >= GROUP_ORDER) throw proofInvalid("vrf proof holds a scalar that is not reduced")
    val s = Scalar.fromCanonicalBytes(sOctets)
    val c = Scalar.fromCanonicalBytes(challenge.copyOf(VRF_KEY_OCTETS))
    // 7. H.
    val h = RistrettoElement.fromUniformBytes(sha512(SUITE, ENCODE_TO_GROUP, publicKey, input))
    // 8., 9. U = s*B - c*Y, V = s*H - c*Gamma.
    val u = Constants.RISTRETTO_GENERATOR_TABLE.multiply(s).subtract(y.multiply(c))
    val v = h.multiply(s).subtract(gamma.multiply(c))
    // 10., 11. c' must be c.
    val expected = sha512(SUITE, CHALLENGE, publicKey, octetsOf(h), gammaOctets, octetsOf(u), octetsOf(v), BACK)
    if (!expected.copyOf(CHALLENGE_OCTETS).contentEquals(challenge))
        throw proofInvalid("vrf proof does not hold for this key and input")
    return sha512(SUITE, PROOF_TO_HASH, gammaOctets, BACK)
}

/**
 * Whether two proofs for one input, the first already verified, have the same hash. Gamma fixes the hash, so the second
 * need not be verified.
 */
internal fun isOfSameHash(proof: ByteArray, other: ByteArray): Boolean =
    other.size == proof.size && proof.copyOf(GAMMA_OCTETS).contentEquals(other.copyOf(GAMMA_OCTETS))

/** The element; null for octets that are not the encoding of one (RFC 9496, 4.3.1). */
internal fun elementOrNull(octets: ByteArray): RistrettoElement? {
    if (octets.size != VRF_KEY_OCTETS) return null
    return try {
        CompressedRistretto(octets).decompress()
    } catch (_: InvalidEncodingException) {
        null
    }
}

private fun decodePublicKey(publicKey: ByteArray): RistrettoElement {
    val y = elementOrNull(publicKey) ?: throw keyInvalid("vrf public key is no group element")
    // The identity has one encoding.
    if (publicKey.all { it.toInt() == 0 }) throw keyInvalid("vrf public key is the identity")
    return y
}

private fun octetsOf(element: RistrettoElement): ByteArray = element.compress().toByteArray()
