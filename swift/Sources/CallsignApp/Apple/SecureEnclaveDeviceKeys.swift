#if canImport(CryptoKit) && canImport(Security)
import CallsignVerify
import CryptoKit
import Foundation
import Security

/// Keys that never leave the Secure Enclave: its chip makes them, and uses them where they are. The Keychain keeps what only that
/// chip can read. They work from the first unlock after a start of the phone on, also while it is locked, for calls come then
/// too.
public struct SecureEnclaveDeviceKeys: DeviceKeys {
    public let publicKey: String
    public let signingKey: String
    private let agreement: SecureEnclave.P256.KeyAgreement.PrivateKey
    private let signing: SecureEnclave.P256.Signing.PrivateKey

    /// False on a simulator, and on a Mac without the chip: take `SoftwareDeviceKeys` there.
    public static var isAvailable: Bool { SecureEnclave.isAvailable }

    /// The keys that the Keychain has for the user, else new ones. Throws `STORAGE_CORRUPT` for keys of another chip, such as
    /// after a move to another phone, and `STORAGE_FAILED` before the first unlock.
    public static func of(userId: UInt64, in keychain: KeychainAppStorage = KeychainAppStorage()) async throws
        -> SecureEnclaveDeviceKeys
    {
        let name = "enclave-keys.\(userId)"
        guard let kept = try await keychain.readText(name) else {
            let made = try SecureEnclaveDeviceKeys()
            try await keychain.writeText(name, made.kept)
            return made
        }
        let parts = kept.utf8.split(separator: UInt8(ascii: " ")).map { base64Octets(String(decoding: $0, as: UTF8.self)) }
        guard parts.count == 2, let agreement = parts[0], let signing = parts[1] else { throw storageCorrupt(name) }
        do {
            return try SecureEnclaveDeviceKeys(agreement: agreement, signing: signing)
        } catch {
            throw storageCorrupt(name, cause: error)
        }
    }

    private init() throws {
        let flags = SecAccessControlCreateFlags.privateKeyUsage
        guard
            let access = SecAccessControlCreateWithFlags(
                nil, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, flags, nil)
        else { throw KeychainError(status: errSecParam) }
        self.init(
            try SecureEnclave.P256.KeyAgreement.PrivateKey(accessControl: access),
            try SecureEnclave.P256.Signing.PrivateKey(accessControl: access))
    }

    private init(agreement: [UInt8], signing: [UInt8]) throws {
        self.init(
            try SecureEnclave.P256.KeyAgreement.PrivateKey(dataRepresentation: Data(agreement)),
            try SecureEnclave.P256.Signing.PrivateKey(dataRepresentation: Data(signing)))
    }

    private init(
        _ agreement: SecureEnclave.P256.KeyAgreement.PrivateKey, _ signing: SecureEnclave.P256.Signing.PrivateKey
    ) {
        self.agreement = agreement
        self.signing = signing
        publicKey = encodeBase64(spkiPrefix + Array(agreement.publicKey.x963Representation))
        signingKey = encodeBase64(Array(signing.publicKey.x963Representation))
    }

    /// For the chip alone to read.
    private var kept: String {
        [agreement.dataRepresentation, signing.dataRepresentation].map { encodeBase64([UInt8]($0)) }.joined(separator: " ")
    }

    public func agree(_ point: [UInt8]) async throws -> [UInt8] {
        let other = try P256.KeyAgreement.PublicKey(x963Representation: point)
        return try agreement.sharedSecretFromKeyAgreement(with: other).withUnsafeBytes { Array($0) }
    }

    public func sign(_ message: [UInt8]) async throws -> [UInt8] {
        Array(try signing.signature(for: Data(message)).rawRepresentation)
    }
}
#endif
