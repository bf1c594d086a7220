/**
 * Points of P-256, and signatures by them as device lists have them. The platform verifies; the form of keys and
 * signatures is checked here, where platforms differ.
 */
package callsign.verify

import java.math.BigInteger
import java.security.GeneralSecurityException
import java.security.KeyFactory
import java.security.Signature
import java.security.spec.X509EncodedKeySpec

/** The number of points on the curve. */
internal val P256_ORDER: BigInteger =
    BigInteger("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)

/** Whether the octets are an uncompressed point on P-256 (SEC 1, 3.2.2.1): what a device list has as a signing key. */
public fun isSigningKey(octets: ByteArray): Boolean {
    if (octets.size != POINT_OCTETS || octets[0].toInt() != 4) return false
    val x = unsignedOf(octets.copyOfRange(1, 33))
    val y = unsignedOf(octets.copyOfRange(33, POINT_OCTETS))
    if (x >= PRIME || y >= PRIME) return false
    // y^2 = x^3 - 3x + b
    val right = x.multiply(x).subtract(THREE).multiply(x).add(CURVE_B)
    return y.multiply(y).subtract(right).mod(PRIME).signum() == 0
}

/**
 * Whether the 64 octets r || s are an ECDSA signature with SHA-256 of [message] by the uncompressed P-256 point. False,
 * never an error, for any odd input. Both values of s are taken.
 */
internal fun p256Verify(publicKey: ByteArray, message: ByteArray, signature: ByteArray): Boolean {
    if (!isSigningKey(publicKey) || signature.size != 64) return false
    val r = unsignedOf(signature.copyOf(32))
    val s = unsignedOf(signature.copyOfRange(32, 64))
    if (!isInOrder(r) || !isInOrder(s)) return false
    return try {
        val key = KeyFactory.getInstance("EC").generatePublic(X509EncodedKeySpec(SPKI_PREFIX + publicKey))
        Signature.getInstance("SHA256withECDSA").run {
            initVerify(key)
            update(message)
            verify(derSignature(r, s))
        }
    } catch (_: GeneralSecurityException) {
        false
    }
}

private fun isInOrder(value: BigInteger): Boolean = value.signum() > 0 && value < P256_ORDER

/** ECDSA-Sig-Value of RFC 3279: below 128 octets, so that each length is one octet. */
private fun derSignature(r: BigInteger, s: BigInteger): ByteArray {
    val body = derInteger(r) + derInteger(s)
    return byteArrayOf(0x30, body.size.toByte()) + body
}

private fun derInteger(value: BigInteger): ByteArray {
    val octets = value.toByteArray()
    return byteArrayOf(0x02, octets.size.toByte()) + octets
}

private const val POINT_OCTETS = 65
private val THREE = BigInteger.valueOf(3)

/** The curve (SP 800-186, 3.2.1.3). */
private val PRIME = BigInteger("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff", 16)
private val CURVE_B = BigInteger("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b", 16)

/** Everything of an RFC 5480 SubjectPublicKeyInfo before the 65 octets of a point of P-256. */
private val SPKI_PREFIX: ByteArray =
    BigInteger("3059301306072a8648ce3d020106082a8648ce3d030107034200", 16).toByteArray()
