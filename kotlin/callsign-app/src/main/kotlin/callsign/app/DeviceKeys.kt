/**
 * The device's keys: one that call keys are sealed for, and one that signs device lists. Both are of P-256. Keep them under
 * their user, so that a restart and a later sign-in find the same device.
 */
package callsign.app

import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import callsign.verify.isSigningKey
import java.math.BigInteger
import java.security.GeneralSecurityException
import java.security.InvalidKeyException
import java.security.KeyFactory
import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.PrivateKey
import java.security.PublicKey
import java.security.Signature
import java.security.SignatureException
import java.security.spec.ECGenParameterSpec
import java.security.spec.PKCS8EncodedKeySpec
import java.security.spec.X509EncodedKeySpec
import javax.crypto.KeyAgreement
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext

/** The operations on the keys, wherever these are kept. */
public interface DeviceKeys {
    /** SPKI, base64: as it is registered and logged. */
    public val publicKey: String

    /** The uncompressed point, base64. */
    public val signingKey: String

    /**
     * ECDH with an uncompressed point of 65 octets: the x-coordinate, 32 octets. Throws [GeneralSecurityException] for octets that
     * are no point on the curve.
     */
    public suspend fun agree(point: ByteArray): ByteArray

    /** ECDSA with SHA-256: the 64 octets r || s. */
    public suspend fun sign(message: ByteArray): ByteArray
}

/**
 * Keys of a platform's provider. On Android the pairs may be the Keystore's (agreement of keys needs Android 12 there): their
 * private keys have no encoding, and are used where they are.
 */
public class JcaDeviceKeys(private val agreement: KeyPair, private val signing: KeyPair) : DeviceKeys {
    override val publicKey: String = encodeBase64(SPKI_PREFIX + pointOf(agreement.public))
    override val signingKey: String = encodeBase64(pointOf(signing.public))

    override suspend fun agree(point: ByteArray): ByteArray = withContext(Dispatchers.IO) {
        sharedSecret(agreement.private, point)
    }

    override suspend fun sign(message: ByteArray): ByteArray = withContext(Dispatchers.IO) {
        val der = Signature.getInstance("SHA256withECDSA").run {
            initSign(signing.private)
            update(message)
            sign()
        }
        concatenated(der)
    }

    /** The four keys in one text, to be kept encrypted. Null where a private key can't leave its store. */
    public fun export(): String? {
        val privateKeys = listOf(agreement.private, signing.private).map { it.encoded ?: return null }
        return (listOf(pointOf(agreement.public), pointOf(signing.public)) + privateKeys)
            .joinToString(" ", transform = ::encodeBase64)
    }

    public companion object {
        /** Software keys, made now. */
        public fun generate(): JcaDeviceKeys = JcaDeviceKeys(newPair(), newPair())

        /** The keys of [export]. Throws `STORAGE_CORRUPT` for another text, and for keys that do not belong together. */
        public suspend fun import(text: String): JcaDeviceKeys = try {
            val parts = text.split(' ').map(::decodeBase64)
            if (parts.size != 4) throw InvalidKeyException("not four keys")
            val pairs = (0..1).map { KeyPair(publicKeyOf(parts[it]), privateKeyOf(parts[it + 2])) }
            JcaDeviceKeys(pairs[0], pairs[1]).also { it.assertPaired() }
        } catch (cause: Exception) {
            if (cause !is GeneralSecurityException && cause !is callsign.verify.LogException) throw cause
            val sentence = "The keys of this device can't be read."
            throw CallsignException(CallsignException.LocalCode.STORAGE_CORRUPT, sentence, cause)
        }
    }

    private suspend fun assertPaired() {
        val other = newPair()
        val agreed = agree(pointOf(other.public))
        if (!agreed.contentEquals(sharedSecret(other.private, pointOf(agreement.public))))
            throw InvalidKeyException("the agreement keys are not a pair")
        val signature = Signature.getInstance("SHA256withECDSA").run {
            initSign(signing.private)
            update(agreed)
            sign()
        }
        val verifier = Signature.getInstance("SHA256withECDSA").apply {
            initVerify(signing.public)
            update(agreed)
        }
        if (!verifier.verify(signature)) throw InvalidKeyException("the signing keys are not a pair")
    }
}

/** A pair of P-256 in software. */
internal fun newPair(): KeyPair =
    KeyPairGenerator.getInstance("EC").apply { initialize(ECGenParameterSpec("secp256r1")) }.generateKeyPair()

/** The uncompressed point of a key of P-256: the last octets of its SPKI. */
internal fun pointOf(publicKey: PublicKey): ByteArray {
    val octets = publicKey.encoded
    if (octets.size != SPKI_PREFIX.size + POINT_OCTETS || !octets.copyOf(SPKI_PREFIX.size).contentEquals(SPKI_PREFIX))
        throw InvalidKeyException("not a key of P-256")
    return octets.copyOfRange(SPKI_PREFIX.size, octets.size)
}

internal fun sharedSecret(own: PrivateKey, point: ByteArray): ByteArray {
    val other = publicKeyOf(point)
    // A key of the Keystore shows no encoding, and agrees nowhere else.
    val agreement =
        if (own.encoded == null) KeyAgreement.getInstance("ECDH", "AndroidKeyStore") else KeyAgreement.getInstance("ECDH")
    agreement.init(own)
    agreement.doPhase(other, true)
    return agreement.generateSecret()
}

private fun publicKeyOf(point: ByteArray): PublicKey {
    // Providers differ in whether they look: a point off the curve would give the private key away bit by bit.
    if (!isSigningKey(point)) throw InvalidKeyException("not a point on P-256")
    return KeyFactory.getInstance("EC").generatePublic(X509EncodedKeySpec(SPKI_PREFIX + point))
}

private fun privateKeyOf(pkcs8: ByteArray): PrivateKey =
    KeyFactory.getInstance("EC").generatePrivate(PKCS8EncodedKeySpec(pkcs8))

/** r || s out of an ECDSA-Sig-Value (RFC 3279). */
internal fun concatenated(der: ByteArray): ByteArray {
    if (der.size < 8 || der[0].toInt() != 0x30 || der[1].toInt() != der.size - 2) throw SignatureException("not a signature")
    val rEnd = 4 + der[3]
    if (rEnd + 2 > der.size || rEnd + 2 + der[rEnd + 1] != der.size) throw SignatureException("not a signature")
    return ofHalf(der.copyOfRange(4, rEnd)) + ofHalf(der.copyOfRange(rEnd + 2, der.size))
}

private fun ofHalf(integer: ByteArray): ByteArray {
    val octets = BigInteger(integer).toByteArray().dropWhile { it.toInt() == 0 }
    if (octets.size > 32) throw SignatureException("not a signature of P-256")
    return ByteArray(32 - octets.size) + octets
}

internal const val POINT_OCTETS: Int = 65

/** Everything of an RFC 5480 SubjectPublicKeyInfo before the 65 octets of a point of P-256. */
private val SPKI_PREFIX: ByteArray = decodeBase64("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgA=")
