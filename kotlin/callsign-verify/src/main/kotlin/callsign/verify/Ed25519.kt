/**
 * Ed25519 (RFC 8032), to verify with. Android has none before API 33, and libraries differ at the edges; two clients
 * that disagree about one signature are a split view. So the group comes from a library, and the equation is here.
 */
package callsign.verify

import cafe.cryptography.curve25519.CompressedEdwardsY
import cafe.cryptography.curve25519.EdwardsPoint
import cafe.cryptography.curve25519.InvalidEncodingException
import cafe.cryptography.curve25519.Scalar
import java.math.BigInteger

/** The order of the group's prime subgroup. */
internal val GROUP_ORDER: BigInteger =
    BigInteger.ONE.shiftLeft(252).add(BigInteger("27742317777372353535851937790883648493"))

/**
 * Whether [signature] is one of [message] by the key, without the cofactor. False, never an error, for any odd input:
 * wrong lengths, a point that is not one or not canonical, a key of small order.
 */
internal fun ed25519Verify(publicKey: ByteArray, message: ByteArray, signature: ByteArray): Boolean {
    if (publicKey.size != 32 || signature.size != 64) return false
    val key = canonicalPoint(publicKey) ?: return false
    val s = signature.copyOfRange(32, 64)
    if (key.isSmallOrder || unsignedOfLittleEndian(s) >= GROUP_ORDER) return false
    val r = signature.copyOf(32)
    val k = Scalar.fromBytesModOrderWide(sha512(r, publicKey, message))
    // R = sB - kA, compared octet by octet: with the cofactor, signatures would hold that OpenSSL refuses.
    val implied = EdwardsPoint.vartimeDoubleScalarMultiplyBasepoint(k, key.negate(), Scalar.fromCanonicalBytes(s))
    return implied.compress().toByteArray().contentEquals(r)
}

/** The point; null where the octets are not one, or another spelling of one. */
private fun canonicalPoint(octets: ByteArray): EdwardsPoint? {
    val point = try {
        CompressedEdwardsY(octets).decompress()
    } catch (_: InvalidEncodingException) {
        return null
    }
    return point.takeIf { it.compress().toByteArray().contentEquals(octets) }
}
