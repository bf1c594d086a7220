/** Device lists that this device signs for its user, as base64. */
package callsign.app

import callsign.verify.ListedAlgorithm
import callsign.verify.ListedDevice
import callsign.verify.NextDeviceList
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import callsign.verify.signDeviceList

internal class ListSigner(val userId: ULong, val deviceId: ULong, val keys: DeviceKeys)

internal fun listedDevice(deviceId: ULong, publicKey: String, signingKey: String): ListedDevice {
    val octets = decodeBase64(publicKey)
    val algorithm = if (rsaSpkiOf(octets) == null) ListedAlgorithm.P256 else ListedAlgorithm.RSA2048
    return ListedDevice(deviceId, algorithm, sha256(octets), decodeBase64(signingKey))
}

/** The list that follows [previous]; without one, a first list. */
internal suspend fun signedList(
    signer: ListSigner,
    devices: List<ListedDevice>,
    createdAtMs: Long,
    previous: String? = null,
): String {
    val next = NextDeviceList(signer.userId, devices, signer.deviceId, createdAtMs, previous?.let(::decodeBase64))
    return encodeBase64(signDeviceList(next, signer.keys::sign))
}
