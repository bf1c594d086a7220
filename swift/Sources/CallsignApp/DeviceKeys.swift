import CallsignCrypto
import CallsignVerify

/// The device's keys: one that call keys are sealed for, and one that signs device lists. Both are of P-256. Keep them under
/// their user, so that a restart and a later sign-in find the same device. These are the operations on them, wherever they are
/// kept.
public protocol DeviceKeys: Sendable {
    /// SPKI, base64: as it is registered and logged.
    var publicKey: String { get }

    /// The uncompressed point, base64.
    var signingKey: String { get }

    /// ECDH with an uncompressed point of 65 octets: the x-coordinate, 32 octets. Throws for octets that are no point on the
    /// curve.
    func agree(_ point: [UInt8]) async throws -> [UInt8]

    /// ECDSA with SHA-256: the 64 octets r || s.
    func sign(_ message: [UInt8]) async throws -> [UInt8]
}

/// Keys in memory. On a phone or a Mac `SecureEnclaveDeviceKeys` are the better ones: those never leave their chip.
public struct SoftwareDeviceKeys: DeviceKeys {
    public let publicKey: String
    public let signingKey: String
    private let agreement: KeyPair
    private let signing: KeyPair

    init(agreement: KeyPair, signing: KeyPair) {
        self.agreement = agreement
        self.signing = signing
        publicKey = encodeBase64(spkiPrefix + agreement.point)
        signingKey = encodeBase64(signing.point)
    }

    /// Keys made now.
    public static func generate() -> SoftwareDeviceKeys { SoftwareDeviceKeys(agreement: KeyPair(), signing: KeyPair()) }

    /// The keys of `export`. Throws `STORAGE_CORRUPT` for another text, and for keys that do not belong together.
    public static func `import`(_ text: String) throws -> SoftwareDeviceKeys {
        do {
            let parts = try text.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
                .map { try decodeBase64(String(decoding: $0, as: UTF8.self)) }
            guard parts.count == 4 else { throw CryptoError.keyInvalid }
            let pairs = try (0..<2).map { try KeyPair(secret: parts[$0 + 2], point: parts[$0]) }
            return SoftwareDeviceKeys(agreement: pairs[0], signing: pairs[1])
        } catch {
            throw CallsignError(CallsignError.LocalCode.storageCorrupt, "The keys of this device can't be read.", cause: error)
        }
    }

    public func agree(_ point: [UInt8]) async throws -> [UInt8] { try agreement.agree(point) }

    public func sign(_ message: [UInt8]) async throws -> [UInt8] { try platform.p256Sign(key: signing.secret, message) }

    /// The four keys in one text, to be kept encrypted.
    public func export() -> String {
        [agreement.point, signing.point, agreement.secret, signing.secret].map(encodeBase64).joined(separator: " ")
    }
}

/// A private key of P-256 in software, 32 octets, and its uncompressed point.
struct KeyPair: Sendable {
    let secret: [UInt8]
    let point: [UInt8]

    /// Made now.
    init() {
        while true {
            let key = platform.newP256Key()
            guard let point = try? platform.p256Point(ofKey: key) else { continue }
            secret = key
            self.point = point
            return
        }
    }

    /// Throws `CryptoError` unless the two belong together.
    init(secret: [UInt8], point: [UInt8]) throws {
        guard try platform.p256Point(ofKey: secret) == point else { throw CryptoError.keyInvalid }
        self.secret = secret
        self.point = point
    }

    /// Throws `CryptoError` for a point off the curve, which would give the private key away bit by bit.
    func agree(_ point: [UInt8]) throws -> [UInt8] { try platform.p256Agree(key: secret, point: point) }
}

let pointOctets = 65

/// Everything of an RFC 5480 SubjectPublicKeyInfo before the 65 octets of a point of P-256.
let spkiPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
    0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
]
