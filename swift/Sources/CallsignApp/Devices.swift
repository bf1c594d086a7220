// The user's devices, and the signed list that contacts check them against.
import CallsignVerify

/// A device of the user. `current`: it is this one.
public struct UserDevice: Sendable, Equatable {
    public let deviceId: UInt64
    public let name: String
    public let platform: String
    public let current: Bool
}

@CallsignActor public final class Devices {
    private let session: Session
    private let keyLog: KeyLog
    private let ownList: OwnDeviceList

    /// Where this device stands; nil until that was read.
    public nonisolated let listState = Watched<OwnListState?>(nil)

    init(_ session: Session, _ keyLog: KeyLog, _ ownList: OwnDeviceList) {
        self.session = session
        self.keyLog = keyLog
        self.ownList = ownList
    }

    public func list() async throws -> [UserDevice] {
        try await session.ask("GET", "devices").members("items").map { try deviceOf($0, current: $0.flag("current")) }
    }

    /// Whether the log holds this device's own key, and no other in its name. It is asked at each start; ask once a day, too.
    public func checkKey() async throws -> OwnKeysReport {
        let keyLog = keyLog
        return try await uncancelled { try await keyLog.checkOwn() }
    }

    /// Signs the device out, for good.
    public func remove(_ deviceId: UInt64) async throws { _ = try await session.request("DELETE", "devices/\(deviceId)") }

    /// What Apple needs to wake this device: say it when the system gives new tokens, and at each start.
    public func putPush(_ tokens: PushTokens) async throws {
        _ = try await session.request("PUT", "devices/current/push", body: tokens.members)
    }

    /// Lets contacts encrypt for another device of the user, who has compared the code on both screens.
    public func approve(_ device: WaitingDevice) async throws {
        try await take { try await $0.approve(device) }
    }

    /// Makes this device the only one that contacts encrypt for, since the rest is lost: they hear of it. Throws
    /// `STEP_UP_REQUIRED` unless the user has proven lately who they are.
    public func startOver() async throws {
        try await take { try await $0.startOver() }
    }

    /// Reads the list, and does what needs no question: it happens after each connection and change.
    public func load() async throws {
        try await take { try await $0.load() }
    }

    private func take(_ act: @escaping @CallsignActor (OwnDeviceList) async throws -> OwnListState) async throws {
        try await uncancelled { [ownList, listState] in listState.set(try await act(ownList)) }
    }
}

func deviceOf(_ members: [String: JSONValue], current: Bool) throws -> UserDevice {
    UserDevice(
        deviceId: try members.needId("deviceId"),
        name: members.text("name") ?? "",
        platform: members.text("platform") ?? "",
        current: current
    )
}
