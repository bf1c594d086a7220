#if canImport(Security)
import Foundation
import Security

/// Texts in the Keychain, encrypted by the system: given out from the first unlock after a start of the phone on, also while it
/// is locked, and on this device alone. They outlast the app's removal.
public final class KeychainAppStorage: AppStorage {
    private let service: String
    private let group: String?

    /// `group` is a Keychain access group that the app shares with its notification service extension, which opens sealed pushes.
    public init(service: String = "callsign", group: String? = nil) {
        self.service = service
        self.group = group
    }

    public func get(_ key: String) async throws -> String? {
        guard let octets = try read(key) else { return nil }
        guard let text = String(data: octets, encoding: .utf8) else { throw storageCorrupt(key) }
        return text
    }

    public func put(_ key: String, _ text: String?) async throws {
        if let text { try write(key, Data(text.utf8)) } else { try remove(key) }
    }

    func read(_ key: String) throws -> Data? {
        var query = item(key)
        query[kSecReturnData as String] = true
        query[kSecMatchLimit as String] = kSecMatchLimitOne
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &found)
        if status == errSecItemNotFound { return nil }
        try check(status)
        return found as? Data
    }

    func write(_ key: String, _ octets: Data) throws {
        let values: [String: Any] = [
            kSecValueData as String: octets,
            kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        var status = SecItemUpdate(item(key) as CFDictionary, values as CFDictionary)
        if status == errSecItemNotFound {
            status = SecItemAdd(item(key).merging(values) { $1 } as CFDictionary, nil)
        }
        try check(status)
    }

    private func remove(_ key: String) throws {
        let status = SecItemDelete(item(key) as CFDictionary)
        if status != errSecItemNotFound { try check(status) }
    }

    private func item(_ key: String) -> [String: Any] {
        var item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: key,
            kSecAttrSynchronizable as String: false,
            // Without it, a Mac has its old keychain, which asks the user for each program.
            kSecUseDataProtectionKeychain as String: true,
        ]
        if let group { item[kSecAttrAccessGroup as String] = group }
        return item
    }

    private func check(_ status: OSStatus) throws {
        if status != errSecSuccess { throw KeychainError(status: status) }
    }
}

/// `status` is one of the Security framework's, such as `errSecInteractionNotAllowed` before the first unlock.
public struct KeychainError: Error {
    public let status: OSStatus
}
#endif
