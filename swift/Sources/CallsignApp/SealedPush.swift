import CallsignCrypto
import CallsignVerify

// Pushes that Apple and Google can't read (docs/build/push.md), and the key that this device opens them with.

/// What opens the pushes of this device without waiting for anything: for PushKit's handler and a notification service extension.
public struct PushKey: Sendable {
    private let pushKey: String
    private let deviceId: UInt64

    /// The key is base64, as `of` has found it.
    public init(_ pushKey: String, deviceId: UInt64) {
        self.pushKey = pushKey
        self.deviceId = deviceId
    }

    /// The key that an app has made for the user's pushes; nil where none was made. Throws `STORAGE_CORRUPT`, `STORAGE_FAILED`.
    public static func of(userId: UInt64, deviceId: UInt64, in storage: any AppStorage) async throws -> PushKey? {
        try await pushKeyOf(storage, userId: userId).map { PushKey($0, deviceId: deviceId) }
    }

    /// The members of a push, also of one that is not sealed: it may have been on its way when the key came. Nil for one that was
    /// not sealed for this device.
    public func open(_ members: [String: String]) -> [String: String]? {
        guard let sealed = members["sealed"] else { return members }
        return openPush(pushKey: pushKey, deviceId: deviceId, sealed)
    }
}

/// The key of the user's pushes on this device, base64 as the server has it; nil where none was made.
func pushKeyOf(_ storage: any AppStorage, userId: UInt64) async throws -> String? {
    try await storage.read(storedName(userId)) { kept in
        kept.text("pushKey").flatMap { base64Octets($0)?.count == keyOctets ? $0 : nil }
    }
}

/// Likewise, made where there is none: kept before any server has it.
func makePushKey(_ storage: any AppStorage, userId: UInt64) async throws -> String {
    if let kept = try await pushKeyOf(storage, userId: userId) { return kept }
    let pushKey = encodeBase64(randomOctets(keyOctets))
    try await storage.write(storedName(userId), ["pushKey": .string(pushKey)])
    return pushKey
}

/// The members in a push, as texts. Nil for one that was not sealed with the key for this device.
func openPush(pushKey: String, deviceId: UInt64, _ sealed: String) -> [String: String]? {
    guard let secret = base64Octets(pushKey), let octets = base64Octets(sealed), octets.count >= nonceOctets + tagOctets
    else { return nil }
    let key = platform.hmacSHA256(key: secret, Array(purpose.utf8))
    let padded = try? platform.openGCM(
        key: key, nonce: Array(octets.prefix(nonceOctets)), Array(octets.dropFirst(nonceOctets)),
        authenticating: Array("\(purpose)\n\(deviceId)".utf8))
    guard let end = padded?.lastIndex(where: { $0 != 0 }), let octets = padded?[...end],
        let text = try? decodeUTF8(Array(octets)), let members = objectIn(text)
    else { return nil }
    return Dictionary(uniqueKeysWithValues: members.keys.compactMap { name in members.text(name).map { (name, $0) } })
}

private func storedName(_ userId: UInt64) -> String { "push-key.\(userId)" }

private let purpose = "callsign sealed push v1"
private let keyOctets = 32
