package callsign.verify

/**
 * The next list of one's own user. [devices] are in any order, and the signer is one of them. [previous] is the newest list;
 * null for the first one, or to start over. [createdAtMs] is POSIX time in milliseconds.
 */
public class NextDeviceList(
    public val userId: ULong,
    public val devices: List<ListedDevice>,
    public val signerDeviceId: ULong,
    public val createdAtMs: Long,
    public val previous: ByteArray? = null,
)

/**
 * The octets of the next list. [sign] gives the ECDSA P-256 signature with SHA-256, as the 64 octets r || s. Throws
 * `MALFORMED` for what no list may have.
 */
public suspend fun signDeviceList(next: NextDeviceList, sign: suspend (ByteArray) -> ByteArray): ByteArray {
    val previous = next.previous
    fun listWith(signature: ByteArray) = DeviceList(
        userId = next.userId,
        seq = if (previous == null) 0 else parseDeviceList(previous).seq + 1,
        previousHash = if (previous == null) ByteArray(HASH_OCTETS) else deviceListHash(previous),
        createdAtMs = next.createdAtMs,
        devices = next.devices.sortedBy(ListedDevice::deviceId),
        signerDeviceId = next.signerDeviceId,
        signature = signature,
    )
    val signature = sign(deviceListToSign(listWith(ByteArray(0))))
    return encodeDeviceList(listWith(withLowS(signature)))
}
