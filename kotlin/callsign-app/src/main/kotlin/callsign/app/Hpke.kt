/**
 * HPKE (RFC 9180) in mode Auth, single shot: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. Libraries of HPKE want the
 * private key itself; a key in hardware has `agree` alone.
 */
package callsign.app

import callsign.verify.isSigningKey
import java.security.GeneralSecurityException
import java.security.InvalidKeyException
import javax.crypto.Cipher
import javax.crypto.spec.GCMParameterSpec
import javax.crypto.spec.SecretKeySpec

/** A private key of P-256, wherever it is kept, and its public key: an uncompressed point. [agree] is that of [DeviceKeys]. */
internal class AgreementKey(val point: ByteArray, val agree: suspend (ByteArray) -> ByteArray)

/** AES-GCM under its number of section 7.3. */
internal class Aead(val id: Int, val keyOctets: Int)

/** Appendix A.3 has another [aead]. */
internal class HpkeContext(val info: ByteArray, val aad: ByteArray = ByteArray(0), val aead: Aead = AES_256_GCM)

/**
 * `SealAuth` (6.1): `enc` of 65 octets, then the ciphertext. Throws `InvalidKeyException` for a [receiver] off the curve. Test
 * vectors give their [ephemeral] key.
 */
internal suspend fun sealAuth(
    plaintext: ByteArray,
    sender: AgreementKey,
    receiver: ByteArray,
    context: HpkeContext,
    ephemeral: AgreementKey = makeEphemeral(),
): ByteArray {
    // AuthEncap (4.1). The sender's key takes part in one agreement.
    assertOnCurve(receiver)
    val dh = ephemeral.agree(receiver) + sender.agree(receiver)
    val enc = ephemeral.point
    val sharedSecret = extractAndExpand(dh, enc + receiver + sender.point)
    return enc + cipher(Cipher.ENCRYPT_MODE, sharedSecret, context).doFinal(plaintext)
}

/**
 * `OpenAuth` (6.1) of what [sealAuth] gave. Throws `GeneralSecurityException` unless [sender] sealed it for [receiver] with the
 * same [context].
 */
internal suspend fun openAuth(
    sealed: ByteArray,
    sender: ByteArray,
    receiver: AgreementKey,
    context: HpkeContext,
): ByteArray {
    if (sealed.size < POINT_OCTETS + TAG_OCTETS) throw GeneralSecurityException("${sealed.size} octets are no sealed text")
    // AuthDecap (4.1). The receiver's key takes part in both agreements, so it meets no point that was not checked (7.1.4).
    val enc = sealed.copyOf(POINT_OCTETS)
    assertOnCurve(enc)
    assertOnCurve(sender)
    val dh = receiver.agree(enc) + receiver.agree(sender)
    val sharedSecret = extractAndExpand(dh, enc + receiver.point + sender)
    val cipher = cipher(Cipher.DECRYPT_MODE, sharedSecret, context)
    return cipher.doFinal(sealed, POINT_OCTETS, sealed.size - POINT_OCTETS)
}

/** `GenerateKeyPair` (4). */
private fun makeEphemeral(): AgreementKey {
    val pair = newPair()
    return AgreementKey(pointOf(pair.public)) { sharedSecret(pair.private, it) }
}

/** Providers differ in whether they look: a point off the curve would give the private key away bit by bit (7.1.4). */
private fun assertOnCurve(point: ByteArray) {
    if (!isSigningKey(point)) throw InvalidKeyException("not a point on P-256")
}

/** `ExtractAndExpand` (4.1). */
private fun extractAndExpand(dh: ByteArray, kemContext: ByteArray): ByteArray {
    val suite = "KEM".toByteArray() + i2osp(KEM_ID)
    val pseudorandom = labeledExtract(suite, NOTHING, "eae_prk", dh)
    return labeledExpand(suite, pseudorandom, "shared_secret", kemContext, HASH_OCTETS)
}

/** The cipher of `KeySchedule` (5.1) in mode Auth: no PSK. The first nonce is the base nonce (5.2). */
private fun cipher(mode: Int, sharedSecret: ByteArray, context: HpkeContext): Cipher {
    val suite = "HPKE".toByteArray() + i2osp(KEM_ID) + i2osp(KDF_ID) + i2osp(context.aead.id)
    val pskIdHash = labeledExtract(suite, NOTHING, "psk_id_hash", NOTHING)
    val infoHash = labeledExtract(suite, NOTHING, "info_hash", context.info)
    val scheduled = byteArrayOf(MODE_AUTH) + pskIdHash + infoHash
    val secret = labeledExtract(suite, sharedSecret, "secret", NOTHING)
    val key = labeledExpand(suite, secret, "key", scheduled, context.aead.keyOctets)
    val nonce = labeledExpand(suite, secret, "base_nonce", scheduled, NONCE_OCTETS)
    return Cipher.getInstance("AES/GCM/NoPadding").apply {
        init(mode, SecretKeySpec(key, "AES"), GCMParameterSpec(8 * TAG_OCTETS, nonce))
        updateAAD(context.aad)
    }
}

/** `LabeledExtract` (4). */
private fun labeledExtract(suite: ByteArray, salt: ByteArray, label: String, ikm: ByteArray): ByteArray =
    hkdfExtract("HmacSHA256", salt, VERSION + suite + label.toByteArray() + ikm)

/** `LabeledExpand` (4). */
private fun labeledExpand(
    suite: ByteArray,
    pseudorandom: ByteArray,
    label: String,
    info: ByteArray,
    length: Int,
): ByteArray {
    val labeledInfo = i2osp(length) + VERSION + suite + label.toByteArray() + info
    return hkdfExpand("HmacSHA256", pseudorandom, labeledInfo, length)
}

/** A number in two octets, big-endian: `I2OSP` (RFC 8017, 4.1). */
private fun i2osp(value: Int): ByteArray = byteArrayOf((value shr 8).toByte(), value.toByte())

/** Sections 5, 7.1, 7.2 and 7.3. */
private const val MODE_AUTH: Byte = 2
private const val KEM_ID = 0x0010
private const val KDF_ID = 0x0001
private val AES_256_GCM = Aead(0x0002, 32)
private const val HASH_OCTETS = 32
private const val NONCE_OCTETS = 12
private val VERSION = "HPKE-v1".toByteArray()
private val NOTHING = ByteArray(0)
