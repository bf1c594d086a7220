/**
 * A call's key: how it is sealed for a device, and what people compare. docs/check/crypto.md has the format: HPKE (RFC 9180) in mode
 * Auth, so only the receiver can open it, and opening proves which device sealed it. `RsaSeal.kt` has the form for RSA keys.
 */
package callsign.app

import callsign.verify.LogException
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import java.nio.ByteBuffer
import java.security.GeneralSecurityException
import java.security.MessageDigest
import java.security.SecureRandom

/** A device to seal for, or that has sealed. [keyHash] is SHA-256 of the logged public key. */
public class KeyHolder private constructor(
    public val userId: ULong,
    public val deviceId: ULong,
    internal val key: HolderKey,
    internal val keyHash: ByteArray,
) {
    /** `<userId>_<deviceId>` */
    public val name: String = "${userId}_$deviceId"

    public companion object {
        /**
         * [publicKey] is base64, as it is registered: a key of P-256 as SPKI or the point alone, or one of RSA-2048 as SPKI or
         * PKCS#1. Throws `KEY_UNSUPPORTED` for less than a point; another one that is none is found out when it is used.
         */
        public fun of(userId: ULong, deviceId: ULong, publicKey: String): KeyHolder {
            val octets = try {
                decodeBase64(publicKey)
            } catch (_: LogException) {
                ByteArray(0)
            }
            if (octets.size < POINT_OCTETS) throw keyUnsupported(userId, deviceId, "is not one of P-256")
            val point = octets.copyOfRange(octets.size - POINT_OCTETS, octets.size)
            val key = rsaSpkiOf(octets)?.let(HolderKey::Rsa) ?: HolderKey.P256(point)
            return KeyHolder(userId, deviceId, key, sha256(octets))
        }
    }
}

internal sealed interface HolderKey {
    /** Uncompressed: 65 octets. That it is on the curve is found out when it is used. */
    class P256(val point: ByteArray) : HolderKey

    /** Of 2,048 bits. */
    class Rsa(val spki: ByteArray) : HolderKey
}

/** This device. */
public class OwnKeyHolder(userId: ULong, deviceId: ULong, internal val keys: DeviceKeys) {
    /** What other devices know of it. */
    public val holder: KeyHolder = KeyHolder.of(userId, deviceId, keys.publicKey)
}

/**
 * The use that a sealed key is for: it opens for no other call, and for no other epoch of it. Epochs are 1 to 65,535. [nonce] is
 * that of the device that asked for the key, in the answer to it: 16 random octets.
 */
public class KeyBinding(public val callId: String, public val epoch: Long, public val nonce: ByteArray? = null)

/** 32 random octets. */
public fun makeCallKey(): ByteArray = ByteArray(KEY_OCTETS).also(SecureRandom()::nextBytes)

/**
 * Seals a call key with what goes with it, packed by `packCallKey` of callsign-verify: base64. Throws `KEY_UNSUPPORTED` where the
 * receiver's key is no point of P-256 and no RSA-2048 key, and where this device's own is not of P-256.
 */
public suspend fun sealCallKey(content: ByteArray, from: OwnKeyHolder, to: KeyHolder, binding: KeyBinding): String {
    val sender = from.agreementKey
    val context = contextOf(from.holder, to, binding)
    val sealed = when (val key = to.key) {
        is HolderKey.Rsa -> sealForRsa(content, from.keys, to, key.spki, context.info)
        is HolderKey.P256 -> try {
            byteArrayOf(FORM) + sealAuth(content, sender, key.point, context)
        } catch (cause: GeneralSecurityException) {
            throw keyUnsupported(to.userId, to.deviceId, "is not one of P-256", cause)
        }
    }
    return encodeBase64(sealed)
}

/** Gives the octets that were sealed. Throws `CALL_KEY_INVALID` unless [from] sealed it for [to], and for this use. */
public suspend fun openCallKey(sealed: String, from: KeyHolder, to: OwnKeyHolder, binding: KeyBinding): ByteArray = try {
    val octets = decodeBase64(sealed)
    if (octets.isEmpty() || octets[0] != FORM) throw GeneralSecurityException("not a sealed key of form $FORM")
    val context = contextOf(from, to.holder, binding)
    val sender = from.key as? HolderKey.P256 ?: throw GeneralSecurityException("a sender without a key of P-256")
    openAuth(octets.copyOfRange(1, octets.size), sender.point, to.agreementKey, context)
} catch (cause: GeneralSecurityException) {
    throw notSealed(cause)
} catch (cause: LogException) {
    throw notSealed(cause)
}

/**
 * The thirty digits that people read to each other: they are the same where key, call, epoch and the set of devices are. The hash
 * is repeated, which makes two keys with the same digits hard to find. Throws `GeneralSecurityException` for what is no call or epoch.
 */
public fun fingerprintOf(callKey: ByteArray, setHash: ByteArray, binding: KeyBinding): String {
    val sha512 = MessageDigest.getInstance("SHA-512")
    var digest = FINGERPRINT + octetsOf(binding) + setHash + callKey
    repeat(FINGERPRINT_HASHES) { digest = sha512.digest(digest) }
    return List(FINGERPRINT_GROUPS) { digest.copyOfRange(GROUP_OCTETS * it, GROUP_OCTETS * (it + 1)) }
        .map { group -> group.fold(0L) { value, octet -> 256 * value + (octet.toInt() and 255) } % 100_000 }
        .joinToString(" ") { it.toString().padStart(5, '0') }
}

/** Twenty digits in groups of five: of SHA-256, the first four 32-bit words, each modulo 100,000. */
internal fun spokenCode(text: String): String {
    val digest = ByteBuffer.wrap(sha256(text.toByteArray()))
    return List(4) { digest.getInt(4 * it).toUInt() % 100_000u }
        .joinToString(" ") { it.toString().padStart(5, '0') }
}

/** The one place that says what a sealed key is bound to: `info` of HPKE. Integers are big-endian. */
private fun contextOf(sender: KeyHolder, receiver: KeyHolder, binding: KeyBinding): HpkeContext {
    val names = ByteBuffer.allocate(4 * ULong.SIZE_BYTES)
    for (device in listOf(sender, receiver)) names.putLong(device.userId.toLong()).putLong(device.deviceId.toLong())
    return HpkeContext(PURPOSE + octetsOf(binding) + names.array() + (binding.nonce ?: NO_NONCE))
}

/**
 * Call and epoch as they are written: under another spelling of its id a call that has ended would be a new one, and another
 * number would be cut to an epoch.
 */
private fun octetsOf(binding: KeyBinding): ByteArray {
    val callId = binding.callId.toULongOrNull()?.takeIf { "$it" == binding.callId }
    if (callId == null || binding.epoch !in 1..EPOCH_MAX)
        throw GeneralSecurityException("${binding.callId} is no call, or ${binding.epoch} is no epoch")
    return ByteBuffer.allocate(ULong.SIZE_BYTES + Int.SIZE_BYTES).putLong(callId.toLong()).putInt(binding.epoch.toInt()).array()
}

/** Throws `KEY_UNSUPPORTED` for a device that has no such key: it makes no call. */
private val OwnKeyHolder.agreementKey: AgreementKey
    get() {
        val key = holder.key as? HolderKey.P256
            ?: throw keyUnsupported(holder.userId, holder.deviceId, "is not one of P-256, so it seals nothing")
        return AgreementKey(key.point, keys::agree)
    }

/** Names the device. */
internal fun keyUnsupported(userId: ULong, deviceId: ULong, fault: String, cause: Throwable? = null): CallsignException {
    val members = bodyOf(mapOf("userId" to "$userId", "deviceId" to "$deviceId"))
    val sentence = "The key of device $deviceId $fault."
    return CallsignException(CallsignException.LocalCode.KEY_UNSUPPORTED, sentence, cause, members = members)
}

private fun notSealed(cause: Exception): CallsignException {
    val sentence = "This is no key that the device which is said to have sent it has sealed for this call and epoch."
    return CallsignException(CallsignException.LocalCode.CALL_KEY_INVALID, sentence, cause)
}

internal fun sha256(octets: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(octets)

private const val KEY_OCTETS = 32
private const val EPOCH_MAX = 65_535
private val PURPOSE = "callsign call key v2\n".toByteArray()
private val FINGERPRINT = "callsign call fingerprint v2\n".toByteArray()
private const val FINGERPRINT_HASHES = 5_200
private const val FINGERPRINT_GROUPS = 6
private const val GROUP_OCTETS = 5

/** For a key that no device has asked for. */
private val NO_NONCE = ByteArray(16)

/** The first octet of a sealed key. */
private const val FORM: Byte = 2
