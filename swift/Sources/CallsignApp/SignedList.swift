// Device lists that this device signs for its user, as base64.
import CallsignVerify

struct ListSigner: Sendable {
    let userId: UInt64
    let deviceId: UInt64
    let keys: any DeviceKeys
}

/// Throws `malformed` for keys that are not base64.
func listedDevice(_ deviceId: UInt64, publicKey: String, signingKey: String) throws -> ListedDevice {
    let octets = try decodeBase64(publicKey)
    return ListedDevice(
        deviceId: deviceId,
        algorithm: rsaSPKI(of: octets) == nil ? .p256 : .rsa2048,
        publicKeySha256: sha256(octets),
        signingKey: try decodeBase64(signingKey)
    )
}

/// The list that follows `previous`; without one, a first list.
func signedList(
    _ signer: ListSigner, _ devices: [ListedDevice], createdAtMs: Int, previous: String? = nil
) async throws -> String {
    let next = NextDeviceList(
        userId: signer.userId,
        devices: devices,
        signerDeviceId: signer.deviceId,
        createdAtMs: createdAtMs,
        previous: try previous.map { try decodeBase64($0) }
    )
    return encodeBase64(try await signDeviceList(next) { try await signer.keys.sign($0) })
}
