// Registers this device, with the user's first device list where it is their only one.
import CallsignVerify

/// Gives the keys of a user on this device, made now if there are none.
public typealias DeviceKeysOf = @Sendable (_ userId: UInt64) async throws -> any DeviceKeys

/// Software keys in the app's storage, under `keys.<userId>`. Throws `STORAGE_CORRUPT` for keys that do not belong together.
public func softwareKeys(_ storage: any AppStorage) -> DeviceKeysOf {
    { userId in
        let key = "keys.\(userId)"
        if let kept = try await storage.readText(key) { return try SoftwareDeviceKeys.import(kept) }
        let made = SoftwareDeviceKeys.generate()
        try await storage.writeText(key, made.export())
        return made
    }
}

/// Where pushes go. A member that is nil stays as it was; an empty token is taken back.
public struct PushTokens: Sendable, Equatable {
    /// The device token of APNs, hexadecimal.
    public var apnsToken: String?

    /// PushKit's, for calls, hexadecimal.
    public var apnsVoipToken: String?

    /// `production` or `development`: what the app is signed for.
    public var apnsEnvironment: String?

    /// The app's, the topic of its pushes.
    public var bundleId: String?

    public init(
        apnsToken: String? = nil, apnsVoipToken: String? = nil, apnsEnvironment: String? = nil, bundleId: String? = nil
    ) {
        self.apnsToken = apnsToken
        self.apnsVoipToken = apnsVoipToken
        self.apnsEnvironment = apnsEnvironment
        self.bundleId = bundleId
    }

    var members: [String: JSONValue] {
        bodyOf([
            "apnsToken": apnsToken,
            "apnsVoipToken": apnsVoipToken,
            "apnsEnvironment": apnsEnvironment,
            "bundleId": bundleId,
        ])
    }
}

/// Facts about the device that are sent at each start, and its tokens for pushes.
public struct DeviceDetails: Sendable, Equatable {
    public var platform: String
    public var name: String?
    public var model: String?
    public var osVersion: String?
    public var appVersion: String?
    public var locale: String?
    public var push: PushTokens

    public init(
        platform: String = "ios",
        name: String? = nil,
        model: String? = nil,
        osVersion: String? = nil,
        appVersion: String? = nil,
        locale: String? = nil,
        push: PushTokens = PushTokens()
    ) {
        self.platform = platform
        self.name = name
        self.model = model
        self.osVersion = osVersion
        self.appVersion = appVersion
        self.locale = locale
        self.push = push
    }
}

/// This device as the server knows it. `publicKeyHash` is the name of its entry in the log.
struct RegisteredDevice: Sendable {
    let userId: UInt64
    let deviceId: UInt64
    let publicKeyHash: String
    let keys: any DeviceKeys
}

@CallsignActor final class DeviceRegistration {
    private let server: Server
    private let session: Session
    private let storage: any AppStorage
    private let keysOf: DeviceKeysOf
    private let sealedPushes: Bool?

    init(
        _ server: Server, _ session: Session, _ storage: any AppStorage, _ keysOf: @escaping DeviceKeysOf,
        sealedPushes: Bool? = nil
    ) {
        self.server = server
        self.session = session
        self.storage = storage
        self.keysOf = keysOf
        self.sealedPushes = sealedPushes
    }

    /// Registers the keys of the user who is signed in; the same keys again are the same device. Call it at each start and after
    /// each sign-in. Throws `DEVICE_KEYS_LOST` where the keys of the device that was registered are gone.
    @discardableResult func register(_ details: DeviceDetails = DeviceDetails()) async throws -> RegisteredDevice {
        let (userId, keys, known) = try await read()
        // Once registered, the device goes by `OwnDeviceList`: a server that left the list out would get one of this device
        // alone.
        let deviceList = known == nil ? try await firstListOf(userId, keys) : nil
        let reply = try await send(keys, membersOf(details, pushKeyFor(userId)), deviceList)
        let device = RegisteredDevice(
            userId: userId,
            deviceId: try reply.needId("deviceId"),
            publicKeyHash: try reply.needText("publicKeyHash"),
            keys: keys
        )
        let kept = ["publicKey": keys.publicKey, "deviceId": "\(device.deviceId)", "publicKeyHash": device.publicKeyHash]
        try await storage.write(deviceKey(userId), bodyOf(kept))
        try await storage.write(firstListKey(userId), nil)
        return device
    }

    /// The user's device as it was registered last, without asking the server. Nil where it was not. Throws `DEVICE_KEYS_LOST`.
    func known() async throws -> RegisteredDevice? {
        let (userId, keys, known) = try await read()
        return known.map {
            RegisteredDevice(userId: userId, deviceId: $0.deviceId, publicKeyHash: $0.publicKeyHash, keys: keys)
        }
    }

    private func read() async throws -> (UInt64, any DeviceKeys, KnownRegistration?) {
        guard let userId = session.userId else { throw signedOut() }
        let known = try await knownRegistration(storage, userId)
        let keys = try await keysOf(userId)
        if let known, known.publicKey != keys.publicKey {
            let sentence = "The keys of this device are gone from its storage. Start over as a new device."
            throw CallsignError(CallsignError.LocalCode.deviceKeysLost, sentence, members: keyMember(deviceKey(userId)))
        }
        return (userId, keys, known)
    }

    private func send(
        _ keys: any DeviceKeys, _ details: [String: JSONValue], _ deviceList: String?
    ) async throws -> [String: JSONValue] {
        guard let challenge = session.challenge else { throw signedOut() }
        let possession = encodeBase64(try await keys.sign(possessionMessage(challenge)))
        let named = bodyOf(["publicKey": keys.publicKey, "signingKey": keys.signingKey, "possession": possession])
        let members = named.merging(details) { $1 }
        guard let deviceList else { return try await session.ask("POST", "register_device", body: members) }
        do {
            let withList = members.merging(["deviceList": .string(deviceList)]) { $1 }
            return try await session.ask("POST", "register_device", body: withList)
        } catch let error as CallsignError where isListRefused(error) {
            // Another device of the user has been faster.
            return try await session.ask("POST", "register_device", body: members)
        }
    }

    /// An empty one takes it back; nil changes nothing.
    private func pushKeyFor(_ userId: UInt64) async throws -> String? {
        switch sealedPushes {
        case true: try await makePushKey(storage, userId: userId)
        case false: ""
        default: nil
        }
    }

    private func membersOf(_ details: DeviceDetails, _ pushKey: String?) -> [String: JSONValue] {
        let info = bodyOf([
            "platform": details.platform,
            "name": details.name,
            "model": details.model,
            "osVersion": details.osVersion,
            "appVersion": details.appVersion,
            "locale": details.locale,
        ])
        let push = details.push.members.merging(bodyOf(["pushKey": pushKey])) { $1 }
        return push.isEmpty ? ["deviceInfo": .object(info)] : ["deviceInfo": .object(info), "push": .object(push)]
    }

    /// Base64 of the list, nil where the user has one or has other devices. A list that may have reached the server stays in the
    /// storage, and is sent again until there is an answer.
    private func firstListOf(_ userId: UInt64, _ keys: any DeviceKeys) async throws -> String? {
        let users = try await session.ask("GET", "user/publicKeys").members("users").map(publishedUserOf)
        guard let own = users.first(where: { $0.userId == userId }), own.named.deviceList == nil,
            own.named.devices.allSatisfy({ $0.publicKey == keys.publicKey })
        else { return nil }
        if let kept = try await firstList(storage, userId), kept.publicKey == keys.publicKey { return kept.list }
        let deviceId = own.named.devices.first.flatMap { uint64($0.deviceId) } ?? randomId()
        let device = try listedDevice(deviceId, publicKey: keys.publicKey, signingKey: keys.signingKey)
        let signer = ListSigner(userId: userId, deviceId: deviceId, keys: keys)
        let list = try await signedList(signer, [device], createdAtMs: server.serverTimeMs())
        try await storage.write(firstListKey(userId), bodyOf(["publicKey": keys.publicKey, "list": list]))
        return list
    }
}

/// `device` of `verify-login` and `login`: the user's listed device signs the challenge, so that the sign-in need not wait. Nil
/// where this is no device of the user, or its keys are lost.
func deviceProof(
    _ storage: any AppStorage, _ keysOf: DeviceKeysOf, _ userId: UInt64, challenge: [UInt8]
) async -> [String: JSONValue]? {
    // Whatever fails: the sign-in may be another user's, and works without.
    guard let known = try? await knownRegistration(storage, userId), let keys = try? await keysOf(userId),
        // New ones prove nothing.
        keys.publicKey == known.publicKey,
        let message = try? signInMessage(challenge), let signature = try? await keys.sign(message)
    else { return nil }
    return bodyOf(["userId": "\(userId)", "deviceId": "\(known.deviceId)", "signature": encodeBase64(signature)])
}

private struct KnownRegistration: Sendable {
    let publicKey: String
    let deviceId: UInt64
    let publicKeyHash: String
}

/// The user's device as it was registered last.
private func knownRegistration(_ storage: any AppStorage, _ userId: UInt64) async throws -> KnownRegistration? {
    try await storage.read(deviceKey(userId)) { kept in
        guard let publicKey = kept.text("publicKey"), let deviceId = kept.id("deviceId"),
            let publicKeyHash = kept.text("publicKeyHash")
        else { return nil }
        return KnownRegistration(publicKey: publicKey, deviceId: deviceId, publicKeyHash: publicKeyHash)
    }
}

/// The list that may have reached the server, and the key that it is for.
private func firstList(_ storage: any AppStorage, _ userId: UInt64) async throws -> (publicKey: String, list: String)? {
    try await storage.read(firstListKey(userId)) { kept in
        guard let list = kept.text("list"), let publicKey = kept.text("publicKey") else { return nil }
        return (publicKey, list)
    }
}

private func isListRefused(_ error: CallsignError) -> Bool {
    if error.code == "DEVICE_LIST_CONFLICT" { return true }
    if error.code != "VALIDATION_FAILED" { return false }
    return (error.members["errors"]?.array ?? []).contains { $0.object?.text("pointer") == "/deviceList" }
}

private func deviceKey(_ userId: UInt64) -> String { "device.\(userId)" }

private func firstListKey(_ userId: UInt64) -> String { "first-list.\(userId)" }
