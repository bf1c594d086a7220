@_exported import Foundation
import FoundationNetworking

public typealias OSStatus = Int32

// Casts to these are bridges on Apple's systems.
public typealias CFTypeRef = Any
public typealias CFString = String
public typealias CFDictionary = [AnyHashable: Any]
public typealias CFData = Data
public typealias CFArray = [Any]
public final class CFError: Error, @unchecked Sendable {}
public final class CFAllocator: @unchecked Sendable {}
public final class SecAccessControl: @unchecked Sendable {}
public final class SecKey: @unchecked Sendable {}
public final class SecTrust: @unchecked Sendable {}
public final class SecCertificate: @unchecked Sendable {}

public struct SecAccessControlCreateFlags: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var privateKeyUsage: Self { fatalError() }
    public static var userPresence: Self { fatalError() }
}

public struct SecKeyAlgorithm: Sendable {
    public static var rsaEncryptionOAEPSHA256: Self { fatalError() }
}

public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? { fatalError() }

public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { fatalError() }
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { fatalError() }
public func SecItemUpdate(_ query: CFDictionary, _ attributes: CFDictionary) -> OSStatus { fatalError() }
public func SecItemDelete(_ query: CFDictionary) -> OSStatus { fatalError() }

public func SecKeyCreateWithData(
    _ data: CFData, _ attributes: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? { fatalError() }

public func SecKeyCreateEncryptedData(
    _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ plaintext: CFData, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? { fatalError() }

public func SecKeyCopyExternalRepresentation(
    _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? { fatalError() }

public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { fatalError() }
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? { fatalError() }
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool { fatalError() }
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { fatalError() }

public let errSecParam: OSStatus = -50
public let errSecSuccess: OSStatus = 0
public let errSecItemNotFound: OSStatus = -25300
public let errSecDuplicateItem: OSStatus = -25299

public var kSecClass: CFString { fatalError() }
public var kSecClassGenericPassword: CFString { fatalError() }
public var kSecAttrService: CFString { fatalError() }
public var kSecAttrAccount: CFString { fatalError() }
public var kSecAttrAccessGroup: CFString { fatalError() }
public var kSecAttrAccessible: CFString { fatalError() }
public var kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString { fatalError() }
public var kSecAttrSynchronizable: CFString { fatalError() }
public var kSecUseDataProtectionKeychain: CFString { fatalError() }
public var kSecValueData: CFString { fatalError() }
public var kSecReturnData: CFString { fatalError() }
public var kSecMatchLimit: CFString { fatalError() }
public var kSecMatchLimitOne: CFString { fatalError() }
public var kSecAttrKeyType: CFString { fatalError() }
public var kSecAttrKeyTypeRSA: CFString { fatalError() }
public var kSecAttrKeyClass: CFString { fatalError() }
public var kSecAttrKeyClassPublic: CFString { fatalError() }

/// Foundation's on Apple's systems.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

extension URLProtectionSpace {
    public var serverTrust: SecTrust? { fatalError() }
}

extension URLSessionWebSocketTask {
    public func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) { fatalError() }
}

/// Optional in Objective-C.
extension URLSessionWebSocketDelegate {
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?) { fatalError() }
}
