/**
 * A call's key: how it is sealed for a device, and what people compare. docs/crypto.md has the format: HPKE (RFC 9180) in mode
 * Auth, so only the receiver can open it, and opening proves which device sealed it.
 */
package callsign.app

import callsign.verify.LogException
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import java.nio.ByteBuffer
import java.security.GeneralSecurityException
import java.security.MessageDigest
import java.security.SecureRandom

/** A device to seal for, or that has sealed. [point] has 65 octets. */
public class KeyHolder private constructor(
    public val userId: ULong,
    public val deviceId: ULong,
    internal val point: ByteArray,
) {
    /** `<userId>_<deviceId>` */
    public val name: String = "${userId}_$deviceId"

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
            return KeyHolder(userId, deviceId, octets.copyOfRange(octets.size - POINT_OCTETS, octets.size))
        }
    }
}

/** This device. */
public class OwnKeyHolder(userId: ULong, deviceId: ULong, internal val keys: DeviceKeys) {
    /** What other devices know of it. */
    public val holder: KeyHolder = KeyHolder.of(userId, deviceId, keys.publicKey)
}

/** The use that a sealed key is for: it opens for no other call, and for no other epoch of it. */
public data class KeyBinding(public val callId: String, public val epoch: Long)

/** 32 random octets. */
public fun makeCallKey(): ByteArray = ByteArray(KEY_OCTETS).also(SecureRandom()::nextBytes)

/**
 * Seals a call key, or one with a checkpoint behind it (`withCheckpoint` of callsign-verify): base64. Throws
 * `KEY_UNSUPPORTED` where the receiver's key is no point of P-256.
 */
public suspend fun sealCallKey(callKey: ByteArray, from: OwnKeyHolder, to: KeyHolder, binding: KeyBinding): String {
    val context = contextOf(from.holder, to, binding)
    val sealed = try {
        sealAuth(callKey, from.agreementKey, to.point, context)
    } catch (cause: GeneralSecurityException) {
        val sentence = "The key of device ${to.name} is not one of P-256."
        throw CallsignException(CallsignException.LocalCode.KEY_UNSUPPORTED, sentence, cause)
    }
    return encodeBase64(byteArrayOf(FORM) + sealed)
}

/** Gives the octets that were sealed. Throws `CALL_KEY_INVALID` unless [from] sealed it for [to], and for this use. */
public suspend fun openCallKey(sealed: String, from: KeyHolder, to: OwnKeyHolder, binding: KeyBinding): ByteArray = try {
    val octets = decodeBase64(sealed)
    if (octets.isEmpty() || octets[0] != FORM) throw GeneralSecurityException("not a sealed key of form $FORM")
    val context = contextOf(from, to.holder, binding)
    openAuth(octets.copyOfRange(1, octets.size), from.point, to.agreementKey, context)
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

/** The one place that says what `info` of HPKE has. Integers are big-endian. */
private fun contextOf(sender: KeyHolder, receiver: KeyHolder, binding: KeyBinding): HpkeContext {
    val callId = binding.callId.toULongOrNull() ?: throw GeneralSecurityException("${binding.callId} is not a uint64")
    val info = ByteBuffer.allocate(PURPOSE.size + 5 * ULong.SIZE_BYTES + Int.SIZE_BYTES).put(PURPOSE)
    info.putLong(callId.toLong()).putInt(binding.epoch.toInt())
    for (device in listOf(sender, receiver)) info.putLong(device.userId.toLong()).putLong(device.deviceId.toLong())
    return HpkeContext(info.array())
}

private val OwnKeyHolder.agreementKey: AgreementKey get() = AgreementKey(holder.point, keys::agree)

private fun notSealed(cause: Exception): CallsignException {
    val sentence = "This is no key that the device which is said to have sent it has sealed for this call and epoch."
    return CallsignException(CallsignException.LocalCode.CALL_KEY_INVALID, sentence, cause)
}

private const val KEY_OCTETS = 32
private val PURPOSE = "callsign call key v2\n".toByteArray()

/** The first octet of a sealed key. */
private const val FORM: Byte = 2
