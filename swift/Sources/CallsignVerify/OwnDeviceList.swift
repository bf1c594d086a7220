/// The next list of one's own user.
public struct NextDeviceList: Sendable, Equatable {
    public var userId: UInt64

    /// In any order; the signer is one of them.
    public var devices: [ListedDevice]
    public var signerDeviceId: UInt64

    /// POSIX time in milliseconds.
    public var createdAtMs: Int

    /// The newest list; nil for the first one, or to start over.
    public var previous: [UInt8]?

    public init(userId: UInt64, devices: [ListedDevice], signerDeviceId: UInt64, createdAtMs: Int, previous: [UInt8]? = nil) {
        self.userId = userId
        self.devices = devices
        self.signerDeviceId = signerDeviceId
        self.createdAtMs = createdAtMs
        self.previous = previous
    }
}

/// The octets of the next list. `sign` gives the ECDSA P-256 signature with SHA-256, as the 64 octets r || s. Throws `malformed`
/// for what no list may have.
public func signDeviceList(
    _ next: NextDeviceList,
    sign: @Sendable ([UInt8]) async throws -> [UInt8]
) async throws -> [UInt8] {
    let previous = next.previous
    var list = DeviceList(
        userId: next.userId,
        seq: try previous.map { try parseDeviceList($0).seq + 1 } ?? 0,
        previousHash: previous.map(deviceListHash) ?? [UInt8](repeating: 0, count: hashOctets),
        createdAtMs: next.createdAtMs,
        devices: next.devices.sorted { $0.deviceId < $1.deviceId },
        signerDeviceId: next.signerDeviceId,
        signature: []
    )
    list.signature = try withLowS(await sign(deviceListToSign(list)))
    return try encodeDeviceList(list)
}
