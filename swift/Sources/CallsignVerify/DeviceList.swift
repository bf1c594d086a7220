// Device lists: which devices a user has, signed by one of them. The log holds a list's hash under the user's reserved device id
// 0; the list itself travels beside the keys.
//
//     "callsign device list v1\n"  userId u64  seq u64  SHA-256(previous list) 32 (zeros at seq 0)  createdAtMs u64  n u8
//     n x ( deviceId u64, algorithm u8, SHA-256(public key as registered) 32, signing key 65 (uncompressed P-256) )
//     signerDeviceId u64, ECDSA P-256 signature 64 (r || s, low s) with SHA-256 over everything before the signature
//
// Integers are big-endian. A list has 1 to 10 devices in ascending order of id, and names its signer.

/// The algorithm of a device's agreement key, by its name on the wire.
public enum ListedAlgorithm: String, Sendable, CaseIterable {
    case p256 = "P-256"
    case rsa2048 = "RSA-2048"

    fileprivate var octet: UInt8 {
        switch self {
        case .p256: 1
        case .rsa2048: 2
        }
    }
}

/// One device of a list.
public struct ListedDevice: Sendable, Equatable {
    public let deviceId: UInt64
    public let algorithm: ListedAlgorithm

    /// SHA-256 of the public key as registered: 32 octets.
    public let publicKeySha256: [UInt8]

    /// An uncompressed P-256 point: 65 octets.
    public let signingKey: [UInt8]

    public init(deviceId: UInt64, algorithm: ListedAlgorithm, publicKeySha256: [UInt8], signingKey: [UInt8]) {
        self.deviceId = deviceId
        self.algorithm = algorithm
        self.publicKeySha256 = publicKeySha256
        self.signingKey = signingKey
    }
}

/// A device list.
public struct DeviceList: Sendable, Equatable {
    public let userId: UInt64
    public let seq: Int

    /// SHA-256 of the list before, zeros at seq 0.
    public let previousHash: [UInt8]
    public let createdAtMs: Int

    /// In ascending order of id.
    public let devices: [ListedDevice]
    public let signerDeviceId: UInt64

    /// 64 octets, r || s with low s.
    public internal(set) var signature: [UInt8]
}

/// Why `judgeDeviceList` refuses a list, by the name that the vectors have.
package enum DeviceListRefusal: String, Sendable {
    case malformed = "malformed"
    case anotherUser = "another-user"
    case wrongPreviousHash = "wrong-previous-hash"
    case seqJump = "seq-jump"

    /// No device of the previous list has this signing key.
    case signerNotInPrevious = "signer-not-in-previous"
    case highS = "high-s"
    case badSignature = "bad-signature"
}

package enum ListKind: String, Sendable {
    /// There was no list to compare with. Its seq is above 0 for an app that meets the user later.
    case first

    /// The same octets again.
    case unchanged

    /// Signed by a device of the previous list.
    case successor

    /// The user has started over with a list of seq 0.
    case reset
}

package enum DeviceListVerdict: Sendable {
    case taken(ListKind, DeviceList)
    case refused(DeviceListRefusal, String)
}

/// Reads a list. Throws `malformed` unless the octets are exactly those of a list. The signature is only read; `judgeDeviceList`
/// verifies it.
package func parseDeviceList(_ octets: [UInt8]) throws -> DeviceList {
    guard octets.count >= (try lengthOf(1)), octets.starts(with: magic) else { throw LogError.malformed("not a device list") }
    let count = Int(octets[countAt])
    guard octets.count == (try lengthOf(count)) else {
        throw LogError.malformed("device list of \(count) has \(octets.count) octets, not \(try lengthOf(count))")
    }
    let signerAt = devicesAt + count * deviceOctets
    let list = DeviceList(
        userId: bigEndian(octets, at: userAt, count: 8),
        seq: try safeNumber(octets, at: seqAt),
        previousHash: Array(octets[previousAt..<createdAt]),
        createdAtMs: try safeNumber(octets, at: createdAt),
        devices: try (0..<count).map { try readDevice(octets, at: devicesAt + $0 * deviceOctets) },
        signerDeviceId: bigEndian(octets, at: signerAt, count: 8),
        signature: Array(octets[(signerAt + 8)...])
    )
    try assertContent(list)
    return list
}

/// SHA-256 of the list's octets. The log has it, as base64, under the user's device id 0.
package func deviceListHash(_ octets: [UInt8]) -> [UInt8] { sha256(octets) }

/// The octets that the signer signs. Throws `malformed` for content that no list has.
package func deviceListToSign(_ list: DeviceList) throws -> [UInt8] {
    _ = try lengthOf(list.devices.count)
    var octets = magic + bigEndianOctets(list.userId, count: 8)
    octets += bigEndianOctets(UInt64(bitPattern: Int64(list.seq)), count: 8)
    octets += try ofLength(list.previousHash, hashOctets)
    octets += bigEndianOctets(UInt64(bitPattern: Int64(list.createdAtMs)), count: 8)
    octets.append(UInt8(list.devices.count))
    for device in list.devices {
        octets += bigEndianOctets(device.deviceId, count: 8) + [device.algorithm.octet]
        octets += try ofLength(device.publicKeySha256, hashOctets)
        octets += try ofLength(device.signingKey, signingKeyOctets)
    }
    return octets + bigEndianOctets(list.signerDeviceId, count: 8)
}

/// The octets of a list. Throws `malformed` for what `parseDeviceList` would not take.
package func encodeDeviceList(_ list: DeviceList) throws -> [UInt8] {
    let octets = try deviceListToSign(list) + ofLength(list.signature, listSignatureOctets)
    _ = try parseDeviceList(octets)
    return octets
}

/// Judges the octets of a list of this user by those of the list that was the newest so far. No `next` makes it throw. Throws
/// `malformed` when `next` could follow a `previous` that is no list: the caller's own memory is damaged.
package func judgeDeviceList(userId: UInt64, previous: [UInt8]?, next: [UInt8]) throws -> DeviceListVerdict {
    let list: DeviceList
    do {
        list = try parseDeviceList(next)
    } catch let error as LogError {
        return .refused(.malformed, error.message)
    }
    if list.userId != userId { return .refused(.anotherUser, "the list is of user \(list.userId)") }
    if hasHighS(list.signature) { return .refused(.highS, "the signature has the higher s") }
    // A list that was parsed names its signer.
    guard let signer = list.devices.first(where: { $0.deviceId == list.signerDeviceId }),
        p256Verify(
            publicKey: signer.signingKey, message: Array(next.dropLast(listSignatureOctets)), signature: list.signature)
    else { return .refused(.badSignature, "the signature is not one of the list by its signer") }
    guard let previous else { return .taken(.first, list) }
    if previous == next { return .taken(.unchanged, list) }
    return list.seq == 0 ? .taken(.reset, list) : try judgeSuccessor(previous, list, signer)
}

private func judgeSuccessor(_ previousOctets: [UInt8], _ list: DeviceList, _ signer: ListedDevice) throws -> DeviceListVerdict {
    let previous = try parseDeviceList(previousOctets)
    if list.seq != previous.seq + 1 { return .refused(.seqJump, "seq \(list.seq) follows seq \(previous.seq)") }
    if list.previousHash != deviceListHash(previousOctets) {
        return .refused(.wrongPreviousHash, "the list follows another one")
    }
    guard previous.devices.contains(where: { $0.deviceId == signer.deviceId && $0.signingKey == signer.signingKey }) else {
        return .refused(.signerNotInPrevious, "the signer is no device of the list before")
    }
    return .taken(.successor, list)
}

private func readDevice(_ octets: [UInt8], at: Int) throws -> ListedDevice {
    guard let algorithm = ListedAlgorithm.allCases.first(where: { $0.octet == octets[at + 8] }) else {
        throw LogError.malformed("device list has an algorithm \(octets[at + 8])")
    }
    let keyAt = at + 9 + hashOctets
    return ListedDevice(
        deviceId: bigEndian(octets, at: at, count: 8),
        algorithm: algorithm,
        publicKeySha256: Array(octets[at + 9..<keyAt]),
        signingKey: Array(octets[keyAt..<keyAt + signingKeyOctets])
    )
}

private func assertContent(_ list: DeviceList) throws {
    guard (list.seq == 0) == list.previousHash.allSatisfy({ $0 == 0 }) else {
        throw LogError.malformed("the hash of the previous list is zeros at seq 0 alone")
    }
    var before = deviceListSlot
    for device in list.devices {
        guard device.deviceId > before else { throw LogError.malformed("device ids are not ascending") }
        guard isSigningKey(device.signingKey) else { throw LogError.malformed("a signing key is not a point on P-256") }
        before = device.deviceId
    }
    guard list.devices.contains(where: { $0.deviceId == list.signerDeviceId }) else {
        throw LogError.malformed("the signer is not in the list")
    }
}

private func lengthOf(_ devices: Int) throws -> Int {
    guard (1...listedDevicesMax).contains(devices) else { throw LogError.malformed("device list has \(devices) devices") }
    return devicesAt + devices * deviceOctets + 8 + listSignatureOctets
}

private func safeNumber(_ octets: [UInt8], at: Int) throws -> Int {
    let value = bigEndian(octets, at: at, count: 8)
    guard value <= UInt64(safeMax) else { throw LogError.malformed("\(value) is not below 2^53") }
    return Int(value)
}

/// The device id under which the log holds a user's list. Devices have ids from 2^32 on.
package let deviceListSlot: UInt64 = 0

/// As many devices as a user may have.
private let listedDevicesMax = 10
private let signingKeyOctets = 65
private let listSignatureOctets = 64
private let magic = Array("callsign device list v1\n".utf8)
private let userAt = magic.count
private let seqAt = userAt + 8
private let previousAt = seqAt + 8
private let createdAt = previousAt + hashOctets
private let countAt = createdAt + 8
private let devicesAt = countAt + 1
private let deviceOctets = 8 + 1 + hashOctets + signingKeyOctets
