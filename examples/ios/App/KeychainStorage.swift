import CallsignApp
import Foundation
import Security

/// Texts in the keychain, readable once the phone was unlocked after its start: a push has to ring. No backup takes them to another
/// phone. Unlike files they outlast the app: one that is installed anew finds them.
struct KeychainStorage: AppStorage {
    let service: String

    func get(_ key: String) async throws -> String? {
        var query = item(key)
        query[kSecReturnData as String] = true
        query[kSecMatchLimit as String] = kSecMatchLimitOne
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &found)
        if status == errSecItemNotFound { return nil }
        guard status == errSecSuccess else { throw failed(status) }
        guard let octets = found as? Data, let text = String(data: octets, encoding: .utf8) else {
            throw CallsignError(CallsignError.LocalCode.storageCorrupt, "The keychain’s \"\(key)\" is no text.")
        }
        return text
    }

    func put(_ key: String, _ text: String?) async throws {
        guard let text else {
            let status = SecItemDelete(item(key) as CFDictionary)
            if status != errSecSuccess && status != errSecItemNotFound { throw failed(status) }
            return
        }
        let value = [kSecValueData as String: Data(text.utf8)]
        var status = SecItemUpdate(item(key) as CFDictionary, value as CFDictionary)
        if status == errSecItemNotFound {
            var new = item(key).merging(value) { $1 }
            new[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            status = SecItemAdd(new as CFDictionary, nil)
        }
        if status != errSecSuccess { throw failed(status) }
    }

    private func item(_ key: String) -> [String: Any] {
        [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: key,
        ]
    }

    /// Such as -25308 before the first unlock.
    private func failed(_ status: OSStatus) -> CallsignError {
        CallsignError(CallsignError.LocalCode.storageFailed, "The keychain failed: \(status).")
    }
}
