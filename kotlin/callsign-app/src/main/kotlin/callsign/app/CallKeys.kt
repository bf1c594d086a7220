/**
 * A call's key: how it is sealed for a device, and what people compare. docs/crypto.md has the format, in the manner of
 * HPKE's authenticated mode (RFC 9180): only the receiver can open it, and knows by that who has sealed it.
 */
package callsign.app

import callsign.verify.LogException
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import java.nio.ByteBuffer
import java.security.GeneralSecurityException
import java.security.MessageDigest
import java.security.SecureRandom
import javax.crypto.Cipher
import javax.crypto.spec.GCMParameterSpec
import javax.crypto.spec.SecretKeySpec

/** A device to seal for, or that has sealed. [name] is `<userId>_<deviceId>`; [point] has 65 octets. */
public class KeyHolder private constructor(public val name: String, internal val point: ByteArray) {
    public companion object {
        /**
         * [publicKey] is base64, as it is registered: SPKI, or the point alone. Throws `KEY_UNSUPPORTED` for less than a point;
         * another one that is none is found out when it is used.
         */
        public fun of(userId: ULong, deviceId: ULong, publicKey: String): KeyHolder {
            val octets = try {
                decodeBase64(publicKey)
            } catch (_: LogException) {
                ByteArray(0)
            }
            if (octets.size < POINT_OCTETS) {
                val sentence = "The key of device $deviceId is not one of P-256."
                throw CallsignException(CallsignException.LocalCode.KEY_UNSUPPORTED, sentence)
            }
            return KeyHolder("${userId}_$deviceId", octets.copyOfRange(octets.size - POINT_OCTETS, octets.size))
        }
    }
}

/** This device. */
public class OwnKeyHolder(userId: ULong, deviceId: ULong, internal val keys: DeviceKeys) {
    /** What other devices know of it. */
    public val holder: KeyHolder = KeyHolder.of(userId, deviceId, keys.publicKey)
}

/** 32 random octets. */
public fun makeCallKey(): ByteArray = ByteArray(KEY_OCTETS).also(SecureRandom()::nextBytes)

/**
 * Seals a call key, or one with a checkpoint behind it (`withCheckpoint` of callsign-verify): base64. Throws
 * `KEY_UNSUPPORTED` where the receiver's key is no point of P-256.
 */
public suspend fun sealCallKey(callKey: ByteArray, from: OwnKeyHolder, to: KeyHolder): String {
    val ephemeral = newPair()
    val point = pointOf(ephemeral.public)
    val shared = try {
        sharedSecret(ephemeral.private, to.point) + from.keys.agree(to.point)
    } catch (cause: GeneralSecurityException) {
        val sentence = "The key of device ${to.name} is not one of P-256."
        throw CallsignException(CallsignException.LocalCode.KEY_UNSUPPORTED, sentence, cause)
    }
    val sealed = cipher(Cipher.ENCRYPT_MODE, shared, point, from.holder, to).doFinal(callKey)
    return encodeBase64(point + sealed)
}

/** Gives the octets that were sealed. Throws `CALL_KEY_INVALID` unless [from] sealed it for [to]. */
public suspend fun openCallKey(sealed: String, from: KeyHolder, to: OwnKeyHolder): ByteArray = try {
    val octets = decodeBase64(sealed)
    if (octets.size < SEALED_OCTETS_MIN) throw GeneralSecurityException("${octets.size} octets are no sealed key")
    val point = octets.copyOf(POINT_OCTETS)
    val shared = to.keys.agree(point) + to.keys.agree(from.point)
    val cipher = cipher(Cipher.DECRYPT_MODE, shared, point, from, to.holder)
    cipher.doFinal(octets.copyOfRange(POINT_OCTETS, octets.size))
} catch (cause: GeneralSecurityException) {
    throw notSealed(cause)
} catch (cause: LogException) {
    throw notSealed(cause)
}

/** The fingerprint of the key that people read to each other: twenty digits in groups of five. */
public fun fingerprintOf(callKey: ByteArray, callId: String, epoch: Long): String =
    spokenCode("callsign call fingerprint v1 $callId $epoch ", callKey)

/** Twenty digits in groups of five: of SHA-256, the first four 32-bit words, each modulo 100,000. */
internal fun spokenCode(text: String, octets: ByteArray = ByteArray(0)): String {
    val digest = MessageDigest.getInstance("SHA-256").run {
        update(text.toByteArray())
        ByteBuffer.wrap(digest(octets))
    }
    return List(4) { digest.getInt(4 * it).toUInt() % 100_000u }
        .joinToString(" ") { it.toString().padStart(5, '0') }
}

/** AES-256-GCM by a key and nonce of HKDF over both secrets, bound to sender, receiver, and all keys that took part. */
private fun cipher(mode: Int, shared: ByteArray, ephemeral: ByteArray, from: KeyHolder, to: KeyHolder): Cipher {
    val info = "callsign call key v1 ${from.name} ${to.name} ".toByteArray() + ephemeral + from.point + to.point
    val octets = hkdf("HmacSHA256", shared, info, KEY_OCTETS + IV_OCTETS)
    return Cipher.getInstance("AES/GCM/NoPadding").apply {
        val key = SecretKeySpec(octets, 0, KEY_OCTETS, "AES")
        init(mode, key, GCMParameterSpec(8 * TAG_OCTETS, octets, KEY_OCTETS, IV_OCTETS))
    }
}

private fun notSealed(cause: Exception): CallsignException {
    val sentence = "The call’s key was not sealed by the device that is said to have sent it."
    return CallsignException(CallsignException.LocalCode.CALL_KEY_INVALID, sentence, cause)
}

private const val KEY_OCTETS = 32
private const val IV_OCTETS = 12
private const val SEALED_OCTETS_MIN = POINT_OCTETS + TAG_OCTETS
