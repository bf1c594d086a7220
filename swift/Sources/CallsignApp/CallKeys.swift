import CallsignCrypto
import CallsignVerify

// A call's key: how it is sealed for a device, and what people compare. docs/check/crypto.md has the format: HPKE (RFC 9180) in mode
// Auth, so only the receiver can open it, and opening proves which device sealed it. RsaSeal.swift has the form for RSA keys.

/// A device to seal for, or that has sealed.
public struct KeyHolder: Sendable, Equatable {
    public let userId: UInt64
    public let deviceId: UInt64
    let key: HolderKey

    /// SHA-256 of the logged public key.
    let keyHash: [UInt8]

    /// `publicKey` is base64, as it is registered: a key of P-256 as SPKI or the point alone, or one of RSA-2048 as SPKI or
    /// PKCS#1. Throws `KEY_UNSUPPORTED` for less than a point; another one that is none is found out when it is used.
    public init(userId: UInt64, deviceId: UInt64, publicKey: String) throws {
        let octets = base64Octets(publicKey) ?? []
        guard octets.count >= pointOctets else { throw keyUnsupported(userId, deviceId, "is not one of P-256") }
        self.userId = userId
        self.deviceId = deviceId
        key = rsaSPKI(of: octets).map { .rsa(spki: $0) } ?? .p256(point: octets.suffix(pointOctets))
        keyHash = sha256(octets)
    }

    /// `<userId>_<deviceId>`
    public var name: String { "\(userId)_\(deviceId)" }
}

enum HolderKey: Sendable, Equatable {
    /// Uncompressed: 65 octets. That it is on the curve is found out when it is used.
    case p256(point: [UInt8])

    /// Of 2,048 bits.
    case rsa(spki: [UInt8])
}

/// This device.
public struct OwnKeyHolder: Sendable {
    /// What other devices know of it.
    public let holder: KeyHolder
    let keys: any DeviceKeys

    /// Throws `KEY_UNSUPPORTED` for keys that have not even the size of a point.
    public init(userId: UInt64, deviceId: UInt64, keys: any DeviceKeys) throws {
        holder = try KeyHolder(userId: userId, deviceId: deviceId, publicKey: keys.publicKey)
        self.keys = keys
    }

    /// Throws `KEY_UNSUPPORTED` for a device that has no such key: it makes no call.
    fileprivate var agreementKey: AgreementKey {
        get throws {
            guard case .p256(let point) = holder.key else {
                throw keyUnsupported(holder.userId, holder.deviceId, "is not one of P-256, so it seals nothing")
            }
            return AgreementKey(point: point, agree: keys.agree)
        }
    }
}

/// The use that a sealed key is for: it opens for no other call, and for no other epoch of it. Epochs are 1 to 65,535. `nonce` is
/// that of the device that asked for the key, in the answer to it: 16 random octets.
public struct KeyBinding: Sendable, Equatable {
    public let callId: String
    public let epoch: Int
    public let nonce: [UInt8]?

    public init(callId: String, epoch: Int, nonce: [UInt8]? = nil) {
        self.callId = callId
        self.epoch = epoch
        self.nonce = nonce
    }
}

/// 32 random octets.
public func makeCallKey() -> [UInt8] { randomOctets(32) }

/// Seals a call key with what goes with it, packed by `packCallKey` of CallsignVerify: base64. Throws `KEY_UNSUPPORTED` where the
/// receiver's key is no point of P-256 and no RSA-2048 key, and where this device's own is not of P-256; `malformed` for what is
/// no call or epoch.
public func sealCallKey(
    _ content: [UInt8], from: OwnKeyHolder, to: KeyHolder, binding: KeyBinding
) async throws -> String {
    let sender = try from.agreementKey
    let context = try contextOf(sender: from.holder, receiver: to, binding)
    switch to.key {
    case .rsa(let spki):
        return encodeBase64(try await sealForRSA(content, sender: from.keys, to: to, spki: spki, info: context.info))
    case .p256(let point):
        do {
            return encodeBase64([form] + (try await sealAuth(content, sender: sender, receiver: point, context)))
        } catch let cause as CryptoError {
            throw keyUnsupported(to.userId, to.deviceId, "is not one of P-256", cause)
        }
    }
}

/// Gives the octets that were sealed. Throws `CALL_KEY_INVALID` unless `from` sealed it for `to`, and for this use.
public func openCallKey(
    _ sealed: String, from: KeyHolder, to: OwnKeyHolder, binding: KeyBinding
) async throws -> [UInt8] {
    do {
        let octets = try decodeBase64(sealed)
        guard octets.first == form, case .p256(let sender) = from.key else { throw CryptoError.notAuthentic }
        let context = try contextOf(sender: from, receiver: to.holder, binding)
        return try await openAuth(Array(octets.dropFirst()), sender: sender, receiver: to.agreementKey, context)
    } catch let cause as CryptoError {
        throw notSealed(cause)
    } catch let cause as LogError {
        throw notSealed(cause)
    }
}

/// The thirty digits that people read to each other: they are the same where key, call, epoch and the set of devices are. The
/// hash is repeated, which makes two keys with the same digits hard to find. Throws `malformed` for what is no call or epoch.
public func fingerprintOf(_ callKey: [UInt8], setHash: [UInt8], binding: KeyBinding) throws -> String {
    var digest = fingerprintPurpose + (try octetsOf(binding)) + setHash + callKey
    for _ in 0..<fingerprintHashes { digest = platform.sha512(digest) }
    return (0..<fingerprintGroups)
        .map { fiveDigits(bigEndian(digest, at: groupOctets * $0, count: groupOctets)) }
        .joined(separator: " ")
}

/// Twenty digits in groups of five: of SHA-256, the first four 32-bit words, each modulo 100,000.
func spokenCode(_ text: String) -> String {
    let digest = sha256(Array(text.utf8))
    return (0..<4).map { fiveDigits(bigEndian(digest, at: 4 * $0, count: 4)) }.joined(separator: " ")
}

private func fiveDigits(_ number: UInt64) -> String { String(String(100_000 + number % 100_000).dropFirst()) }

/// The one place that says what a sealed key is bound to: `info` of HPKE. Integers are big-endian.
private func contextOf(sender: KeyHolder, receiver: KeyHolder, _ binding: KeyBinding) throws(LogError) -> HpkeContext {
    let names = [sender.userId, sender.deviceId, receiver.userId, receiver.deviceId].flatMap { bigEndianOctets($0, count: 8) }
    return HpkeContext(info: purpose + (try octetsOf(binding)) + names + (binding.nonce ?? noNonce))
}

/// Call and epoch as they are written: under another spelling of its id a call that has ended would be a new one, and another
/// number would be cut to an epoch.
private func octetsOf(_ binding: KeyBinding) throws(LogError) -> [UInt8] {
    guard let callId = uint64(binding.callId), (1...epochMax).contains(binding.epoch) else {
        throw .malformed("\(binding.callId) is no call, or \(binding.epoch) is no epoch")
    }
    return bigEndianOctets(callId, count: 8) + bigEndianOctets(UInt64(binding.epoch), count: 4)
}

/// Names the device.
func keyUnsupported(_ userId: UInt64, _ deviceId: UInt64, _ fault: String, _ cause: (any Error)? = nil) -> CallsignError {
    let members: [String: JSONValue] = ["userId": .string("\(userId)"), "deviceId": .string("\(deviceId)")]
    let sentence = "The key of device \(deviceId) \(fault)."
    return CallsignError(CallsignError.LocalCode.keyUnsupported, sentence, cause: cause, members: members)
}

private func notSealed(_ cause: any Error) -> CallsignError {
    let sentence = "This is no key that the device which is said to have sent it has sealed for this call and epoch."
    return CallsignError(CallsignError.LocalCode.callKeyInvalid, sentence, cause: cause)
}

private let epochMax = 65_535
private let purpose = Array("callsign call key v2\n".utf8)
private let fingerprintPurpose = Array("callsign call fingerprint v2\n".utf8)
private let fingerprintHashes = 5_200
private let fingerprintGroups = 6
private let groupOctets = 5

/// For a key that no device has asked for.
private let noNonce = [UInt8](repeating: 0, count: 16)

/// The first octet of a sealed key.
private let form: UInt8 = 2
