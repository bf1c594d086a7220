/**
 * How a call's key is sealed for a device with an RSA-2048 key: form 3 of docs/check/crypto.md. RSA has no agreement that would say who
 * sealed, so the sender signs with the key of its device list.
 */
package callsign.app

import callsign.verify.decodeBase64
import callsign.verify.withLowS
import java.security.GeneralSecurityException
import java.security.KeyFactory
import java.security.SecureRandom
import java.security.spec.MGF1ParameterSpec
import java.security.spec.X509EncodedKeySpec
import javax.crypto.Cipher
import javax.crypto.spec.GCMParameterSpec
import javax.crypto.spec.OAEPParameterSpec
import javax.crypto.spec.PSource
import javax.crypto.spec.SecretKeySpec

/** SubjectPublicKeyInfo DER of an RSA-2048 key with the exponent 65537. Null for another key; PKCS#1 is read too. */
internal fun rsaSpkiOf(octets: ByteArray): ByteArray? {
    val modulusAt = octets.size - MODULUS_OCTETS - EXPONENT.size
    if (modulusAt < 0 || !octets.copyOfRange(octets.size - EXPONENT.size, octets.size).contentEquals(EXPONENT)) return null
    val prefix = octets.copyOf(modulusAt)
    return when {
        prefix.contentEquals(SPKI_ALONE + PKCS1) -> octets
        prefix.contentEquals(PKCS1) -> SPKI_ALONE + octets
        else -> null
    }
}

/**
 * The form's number, and all that follows it. [info] is the use of the key, and [spki] the key of [to]. Throws `KEY_UNSUPPORTED` for
 * one that can't be used.
 */
internal suspend fun sealForRsa(
    plaintext: ByteArray,
    sender: DeviceKeys,
    to: KeyHolder,
    spki: ByteArray,
    info: ByteArray,
): ByteArray {
    val secret = ByteArray(SECRET_OCTETS).also(SecureRandom()::nextBytes)
    val sealedSecret = try {
        encryptFor(spki, secret)
    } catch (cause: GeneralSecurityException) {
        throw keyUnsupported(to.userId, to.deviceId, "is no RSA key to encrypt for", cause)
    }
    val use = KEY_PURPOSE + info + to.keyHash + decodeBase64(sender.signingKey)
    val derived = hkdf("HmacSHA256", secret, use, KEY_OCTETS + IV_OCTETS)
    val key = SecretKeySpec(derived.copyOf(KEY_OCTETS), "AES")
    val gcm = Cipher.getInstance("AES/GCM/NoPadding")
    gcm.init(Cipher.ENCRYPT_MODE, key, GCMParameterSpec(TAG_BITS, derived.copyOfRange(KEY_OCTETS, derived.size)))
    val sealed = byteArrayOf(RSA_FORM) + sealedSecret + gcm.doFinal(plaintext)
    return sealed + withLowS(sender.sign(SIGNATURE_PURPOSE + info + sealed))
}

private fun encryptFor(spki: ByteArray, secret: ByteArray): ByteArray {
    val key = KeyFactory.getInstance("RSA").generatePublic(X509EncodedKeySpec(spki))
    val cipher = Cipher.getInstance("RSA/ECB/OAEPPadding")
    cipher.init(Cipher.ENCRYPT_MODE, key, OAEP)
    return cipher.doFinal(secret)
}

/** By its name alone, the padding has MGF1 with SHA-1 in most providers. */
private val OAEP = OAEPParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, PSource.PSpecified.DEFAULT)
private val KEY_PURPOSE = "callsign call key rsa v2\n".toByteArray()
private val SIGNATURE_PURPOSE = "callsign call key rsa signature v2\n".toByteArray()

private const val RSA_FORM: Byte = 3
private const val SECRET_OCTETS = 32
private const val KEY_OCTETS = 32
private const val IV_OCTETS = 12
private const val TAG_BITS = 128

private const val MODULUS_OCTETS = 256

/** The DER of 65537, which ends an RSAPublicKey. */
private val EXPONENT = byteArrayOf(2, 3, 1, 0, 1)

/** RSAPublicKey DER (RFC 8017, A.1.1) up to the modulus. */
private val PKCS1 = decodeBase64("MIIBCgKCAQEA")

/** SubjectPublicKeyInfo DER up to the RSAPublicKey in it. */
private val SPKI_ALONE = decodeBase64("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A")
