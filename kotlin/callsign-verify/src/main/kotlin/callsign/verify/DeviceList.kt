/**
 * Device lists: which devices a user has, signed by one of them. The log holds a list's hash under the user's reserved
 * device id 0; the list itself travels beside the keys.
 *
 *     "callsign device list v1\n"  userId u64  seq u64  SHA-256(previous list) 32 (zeros at seq 0)  createdAtMs u64  n u8
 *     n x ( deviceId u64, algorithm u8, SHA-256(public key as registered) 32, signing key 65 (uncompressed P-256) )
 *     signerDeviceId u64, ECDSA P-256 signature 64 (r || s, low s) with SHA-256 over everything before the signature
 *
 * Integers are big-endian. A list has 1 to 10 devices in ascending order of id, and names its signer.
 */
package callsign.verify

import java.math.BigInteger
import java.nio.ByteBuffer

/** The algorithm of a device's agreement key. [wireName] is its name on the wire. */
public enum class ListedAlgorithm(public val wireName: String, internal val octet: Byte) {
    P256("P-256", 1),
    RSA2048("RSA-2048", 2),
}

/**
 * One device of a list. [publicKeySha256] has 32 octets: SHA-256 of the public key as registered. [signingKey] has 65: an
 * uncompressed P-256 point.
 */
public class ListedDevice(
    public val deviceId: ULong,
    public val algorithm: ListedAlgorithm,
    public val publicKeySha256: ByteArray,
    public val signingKey: ByteArray,
)

/**
 * A device list. [previousHash] is SHA-256 of the list before, zeros at seq 0; [devices] are in ascending order of id;
 * [signature] has 64 octets, r || s with low s.
 */
public class DeviceList internal constructor(
    public val userId: ULong,
    public val seq: Long,
    public val previousHash: ByteArray,
    public val createdAtMs: Long,
    public val devices: List<ListedDevice>,
    public val signerDeviceId: ULong,
    public val signature: ByteArray,
)

/** Why [judgeDeviceList] refuses a list. [wireName] is the name that the vectors have. */
internal enum class DeviceListRefusal(val wireName: String) {
    MALFORMED("malformed"),
    ANOTHER_USER("another-user"),
    WRONG_PREVIOUS_HASH("wrong-previous-hash"),
    SEQ_JUMP("seq-jump"),

    /** No device of the previous list has this signing key. */
    SIGNER_NOT_IN_PREVIOUS("signer-not-in-previous"),
    HIGH_S("high-s"),
    BAD_SIGNATURE("bad-signature"),
}

internal enum class ListKind(val wireName: String) {
    /** There was no list to compare with. Its seq is above 0 for an app that meets the user later. */
    FIRST("first"),

    /** The same octets again. */
    UNCHANGED("unchanged"),

    /** Signed by a device of the previous list. */
    SUCCESSOR("successor"),

    /** The user has started over with a list of seq 0. */
    RESET("reset"),
}

internal sealed interface DeviceListVerdict

internal class TakenList(val kind: ListKind, val list: DeviceList) : DeviceListVerdict

internal class RefusedList(val reason: DeviceListRefusal, val detail: String) : DeviceListVerdict

/**
 * Reads a list. Throws `MALFORMED` unless the octets are exactly those of a list. The signature is only read;
 * [judgeDeviceList] verifies it.
 */
internal fun parseDeviceList(octets: ByteArray): DeviceList {
    if (octets.size < lengthOf(1) || !octets.copyOf(MAGIC.size).contentEquals(MAGIC))
        throw malformed("not a device list")
    val count = octets[COUNT_AT].toInt() and 0xff
    if (count !in 1..LISTED_DEVICES_MAX) throw malformed("device list has $count devices")
    if (octets.size != lengthOf(count))
        throw malformed("device list of $count has ${octets.size} octets, not ${lengthOf(count)}")
    val signerAt = DEVICES_AT + count * DEVICE_OCTETS
    val list = DeviceList(
        userId = uint64At(octets, USER_AT),
        seq = safeNumberAt(octets, SEQ_AT),
        previousHash = octets.copyOfRange(PREVIOUS_AT, PREVIOUS_AT + HASH_OCTETS),
        createdAtMs = safeNumberAt(octets, CREATED_AT),
        devices = List(count) { readDevice(octets, DEVICES_AT + it * DEVICE_OCTETS) },
        signerDeviceId = uint64At(octets, signerAt),
        signature = octets.copyOfRange(signerAt + 8, octets.size),
    )
    assertContent(list)
    return list
}

/** SHA-256 of the list's octets. The log has it, as base64, under the user's device id 0. */
internal fun deviceListHash(octets: ByteArray): ByteArray = sha256(octets)

/** The octets that the signer signs. Throws `MALFORMED` for content that no list has. */
internal fun deviceListToSign(list: DeviceList): ByteArray {
    val buffer = ByteBuffer.allocate(lengthOf(list.devices.size) - LIST_SIGNATURE_OCTETS)
    buffer.put(MAGIC).putLong(list.userId.toLong()).putLong(list.seq)
    buffer.put(ofLength(list.previousHash, HASH_OCTETS)).putLong(list.createdAtMs)
    buffer.put(list.devices.size.toByte())
    for (device in list.devices) {
        buffer.putLong(device.deviceId.toLong()).put(device.algorithm.octet)
        buffer.put(ofLength(device.publicKeySha256, HASH_OCTETS)).put(ofLength(device.signingKey, SIGNING_KEY_OCTETS))
    }
    return buffer.putLong(list.signerDeviceId.toLong()).array()
}

/** The octets of a list. Throws `MALFORMED` for what [parseDeviceList] would not take. */
internal fun encodeDeviceList(list: DeviceList): ByteArray {
    val octets = deviceListToSign(list) + ofLength(list.signature, LIST_SIGNATURE_OCTETS)
    parseDeviceList(octets)
    return octets
}

/** The signature r || s with the lower of its two s. Key stores give either. */
public fun withLowS(signature: ByteArray): ByteArray {
    ofLength(signature, LIST_SIGNATURE_OCTETS)
    val s = unsignedOf(signature.copyOfRange(32, 64))
    if (s <= HALF_ORDER || s >= P256_ORDER) return signature.copyOf()
    val low = P256_ORDER.subtract(s).toByteArray().takeLast(32).toByteArray()
    return signature.copyOf(64 - low.size).also { it.fill(0, 32, it.size) } + low
}

/**
 * Judges the octets of a list of [userId] by those of the list that was the newest so far. No [next] makes it throw. Throws
 * `MALFORMED` when [next] could follow a [previous] that is no list: the caller's own memory is damaged.
 */
internal fun judgeDeviceList(userId: ULong, previous: ByteArray?, next: ByteArray): DeviceListVerdict {
    val list = try {
        parseDeviceList(next)
    } catch (error: LogException) {
        return RefusedList(DeviceListRefusal.MALFORMED, error.message.orEmpty())
    }
    if (list.userId != userId) return RefusedList(DeviceListRefusal.ANOTHER_USER, "the list is of user ${list.userId}")
    if (unsignedOf(list.signature.copyOfRange(32, 64)) > HALF_ORDER)
        return RefusedList(DeviceListRefusal.HIGH_S, "the signature has the higher s")
    // A list that was parsed names its signer.
    val signer = list.devices.first { it.deviceId == list.signerDeviceId }
    val signed = next.copyOf(next.size - LIST_SIGNATURE_OCTETS)
    if (!p256Verify(signer.signingKey, signed, list.signature))
        return RefusedList(DeviceListRefusal.BAD_SIGNATURE, "the signature is not one of the list by its signer")
    if (previous == null) return TakenList(ListKind.FIRST, list)
    if (previous.contentEquals(next)) return TakenList(ListKind.UNCHANGED, list)
    return if (list.seq == 0L) TakenList(ListKind.RESET, list) else judgeSuccessor(previous, list, signer)
}

private fun judgeSuccessor(previousOctets: ByteArray, list: DeviceList, signer: ListedDevice): DeviceListVerdict {
    val previous = parseDeviceList(previousOctets)
    if (list.seq != previous.seq + 1)
        return RefusedList(DeviceListRefusal.SEQ_JUMP, "seq ${list.seq} follows seq ${previous.seq}")
    if (!list.previousHash.contentEquals(deviceListHash(previousOctets)))
        return RefusedList(DeviceListRefusal.WRONG_PREVIOUS_HASH, "the list follows another one")
    val known = previous.devices.find { it.deviceId == signer.deviceId }
    if (known == null || !known.signingKey.contentEquals(signer.signingKey))
        return RefusedList(DeviceListRefusal.SIGNER_NOT_IN_PREVIOUS, "the signer is no device of the list before")
    return TakenList(ListKind.SUCCESSOR, list)
}

private fun readDevice(octets: ByteArray, at: Int): ListedDevice {
    val octet = octets[at + 8]
    val algorithm = ListedAlgorithm.entries.find { it.octet == octet }
        ?: throw malformed("device list has an algorithm $octet")
    val keyAt = at + 9 + HASH_OCTETS
    return ListedDevice(
        uint64At(octets, at),
        algorithm,
        octets.copyOfRange(at + 9, keyAt),
        octets.copyOfRange(keyAt, keyAt + SIGNING_KEY_OCTETS),
    )
}

private fun assertContent(list: DeviceList) {
    if ((list.seq == 0L) != list.previousHash.all { it.toInt() == 0 })
        throw malformed("the hash of the previous list is zeros at seq 0 alone")
    var before = DEVICE_LIST_SLOT
    for (device in list.devices) {
        if (device.deviceId <= before) throw malformed("device ids are not ascending")
        if (!isSigningKey(device.signingKey)) throw malformed("a signing key is not a point on P-256")
        before = device.deviceId
    }
    if (list.devices.none { it.deviceId == list.signerDeviceId }) throw malformed("the signer is not in the list")
}

private fun lengthOf(devices: Int): Int {
    if (devices !in 1..LISTED_DEVICES_MAX) throw malformed("device list has $devices devices")
    return DEVICES_AT + devices * DEVICE_OCTETS + 8 + LIST_SIGNATURE_OCTETS
}

private fun safeNumberAt(octets: ByteArray, at: Int): Long {
    val value = uint64At(octets, at)
    if (value > SAFE_MAX.toULong()) throw malformed("$value is not below 2^53")
    return value.toLong()
}

/** The device id under which the log holds a user's list. Devices have ids from 2^32 on. */
internal const val DEVICE_LIST_SLOT: ULong = 0u

/** As many devices as a user may have. */
private const val LISTED_DEVICES_MAX = 10
private const val SIGNING_KEY_OCTETS = 65
private const val LIST_SIGNATURE_OCTETS = 64
private val MAGIC = "callsign device list v1\n".toByteArray()
private val USER_AT = MAGIC.size
private val SEQ_AT = USER_AT + 8
private val PREVIOUS_AT = SEQ_AT + 8
private val CREATED_AT = PREVIOUS_AT + HASH_OCTETS
private val COUNT_AT = CREATED_AT + 8
private val DEVICES_AT = COUNT_AT + 1
private const val DEVICE_OCTETS = 8 + 1 + HASH_OCTETS + SIGNING_KEY_OCTETS
private val HALF_ORDER: BigInteger = P256_ORDER.shiftRight(1)
