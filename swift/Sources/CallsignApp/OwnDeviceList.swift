// The user's own device list, which says for which of their devices other people encrypt. This device makes the first one,
// approves further devices once its user says so, leaves removed ones out, or starts over when the rest is lost.
import CallsignVerify

/// Where this device stands.
public enum OwnListState: Sendable, Equatable {
    /// The user has several devices and no list. `startOver` makes one.
    case noList

    /// A device of the list has to approve this one, which shows `code`.
    case waiting(code: String)

    /// This device is on the list, and can approve those that wait.
    case listed(waiting: [WaitingDevice])
}

public struct WaitingDevice: Sendable, Equatable {
    public let deviceId: UInt64
    public let name: String
    public let publicKey: String
    public let signingKey: String

    /// Twenty digits that the device shows, too.
    public let code: String
}

/// Each function returns the state that it leads to. They throw as those of `KeyLog`, and then nothing is signed, or as the
/// server refuses `PUT user/device-list`.
@CallsignActor final class OwnDeviceList {
    private let server: Server
    private let session: Session
    private let keyLog: KeyLog
    private let device: RegisteredDevice
    private let turn = Turns()

    init(_ server: Server, _ session: Session, _ keyLog: KeyLog, _ device: RegisteredDevice) {
        self.server = server
        self.session = session
        self.keyLog = keyLog
        self.device = device
    }

    /// Does what needs no question. Call it at each start, and when the user's devices or list have changed.
    func load() async throws -> OwnListState {
        let (device, listed) = (device, try ownListed())
        return try await change { own in
            let present = own.user.named.devices.map(\.deviceId)
            guard let list = own.list else { return present.allSatisfy { $0 == "\(device.deviceId)" } ? [listed] : nil }
            let left = list.devices.filter { present.contains("\($0.deviceId)") }
            return list.devices.has(device.deviceId) && left.count < list.devices.count ? left : nil
        }
    }

    /// Puts a device on the list, with the keys of its code: the user has compared it.
    func approve(_ waiting: WaitingDevice) async throws -> OwnListState {
        let device = device
        return try await change { own in
            let devices = own.list?.devices ?? []
            if !devices.has(device.deviceId) || devices.has(waiting.deviceId) { return nil }
            return devices
                + [try listedDevice(waiting.deviceId, publicKey: waiting.publicKey, signingKey: waiting.signingKey)]
        }
    }

    /// Makes a list of this device alone, which no other one has signed: contacts hear of it. Throws `STEP_UP_REQUIRED` unless
    /// the user has proven lately who they are.
    func startOver() async throws -> OwnListState {
        let (device, listed) = (device, try ownListed())
        return try await change(isReset: true) { own in
            let isAlone = own.list.map { $0.seq == 0 && $0.devices.count == 1 && $0.devices.has(device.deviceId) } ?? false
            return isAlone ? nil : [listed]
        }
    }

    private func ownListed() throws -> ListedDevice {
        try listedDevice(device.deviceId, publicKey: device.keys.publicKey, signingKey: device.keys.signingKey)
    }

    /// Signs lists until `next` has nothing to change. It is asked again with the newest list when another device has been
    /// faster. Changes take turns.
    private func change(
        isReset: Bool = false, next: @CallsignActor (OwnUser) throws -> [ListedDevice]?
    ) async throws -> OwnListState {
        try await turn.one {
            var left = Self.tries
            var own = try await keyLog.ownUser()
            while let devices = try next(own) {
                do {
                    try await put(own, devices, isReset)
                } catch let error as CallsignError {
                    left -= 1
                    if left <= 0 || error.code != "DEVICE_LIST_CONFLICT" { throw error }
                }
                own = try await keyLog.ownUser()
            }
            return try await stateOf(own)
        }
    }

    private func put(_ own: OwnUser, _ devices: [ListedDevice], _ isReset: Bool) async throws {
        let previous = isReset ? nil : own.user.named.deviceList
        // A list is younger than the one before, whatever the clocks say.
        let createdAtMs = max(server.serverTimeMs(), (own.list?.createdAtMs ?? 0) &+ 1)
        let signer = ListSigner(userId: device.userId, deviceId: device.deviceId, keys: device.keys)
        let list = try await signedList(signer, devices, createdAtMs: createdAtMs, previous: previous)
        let headers = own.list.map { ["if-match": "\"\($0.seq)\""] } ?? [:]
        _ = try await session.request("PUT", "user/device-list", body: bodyOf(["list": list]), headers: headers)
    }

    private func stateOf(_ own: OwnUser) async throws -> OwnListState {
        guard let list = own.list else { return .noList }
        if !list.devices.has(device.deviceId) {
            return .waiting(code: codeOf(device.keys.publicKey, device.keys.signingKey))
        }
        let left = own.user.named.devices.filter { named in !list.devices.contains { "\($0.deviceId)" == named.deviceId } }
        if left.isEmpty { return .listed(waiting: []) }
        let items = try await session.ask("GET", "devices").members("items")
        let waiting = left.compactMap { named -> WaitingDevice? in
            // Without a signing key it can't be on a list.
            guard let signingKey = own.user.signingKeys[named.deviceId], let deviceId = uint64(named.deviceId) else { return nil }
            return WaitingDevice(
                deviceId: deviceId,
                name: items.first { $0.text("deviceId") == named.deviceId }?.text("name") ?? "",
                publicKey: named.publicKey,
                signingKey: signingKey,
                code: codeOf(named.publicKey, signingKey)
            )
        }
        return .listed(waiting: waiting)
    }

    private static let tries = 4
}

extension [ListedDevice] {
    fileprivate func has(_ deviceId: UInt64) -> Bool { contains { $0.deviceId == deviceId } }
}

private func codeOf(_ publicKey: String, _ signingKey: String) -> String {
    spokenCode("callsign device v1\n\(publicKey)\n\(signingKey)")
}
