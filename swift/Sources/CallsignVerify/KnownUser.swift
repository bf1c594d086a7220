// An app's memory of a person: the devices, the newest list, and the events and questions still to show.

/// A change of a person's devices. `deviceId` is nil where all devices are meant.
public struct DeviceEvent: Sendable, Equatable {
    /// By its name on the wire.
    public enum Kind: String, Sendable, CaseIterable {
        /// A device, or another key of one, that a device of the list before has signed for.
        case addedByList = "added-by-list"

        /// It is not in the list any more; nothing is encrypted for it.
        case removed

        /// No device of the list before signed the list: the person has started over, or someone else is at work.
        case reset

        /// The server named a device that the list does not: nothing is encrypted for it.
        case unlisted

        /// A device that no list vouches for.
        case added

        /// Another key of a device that no list vouches for.
        case replaced
    }

    public let kind: Kind
    public let deviceId: String?

    public init(_ kind: Kind, deviceId: String? = nil) {
        self.kind = kind
        self.deviceId = deviceId
    }

    /// A device that no list names can have any text for an id.
    public static func == (one: DeviceEvent, other: DeviceEvent) -> Bool {
        one.kind == other.kind && one.deviceId.map { Array($0.utf8) } == other.deviceId.map { Array($0.utf8) }
    }
}

/// A change of a person's keys that nothing known before vouches for. Encrypt for them once `ContactDevices.accept` was called
/// with `listHash`: base64, of the newest list; without a list a hash of all devices and keys.
public struct KeyQuestion: Sendable, Equatable {
    /// By its name on the wire.
    public enum Kind: String, Sendable, CaseIterable {
        /// The event of that name.
        case reset

        /// The person had no list before, and no key that is known has signed this one.
        case firstList = "first-list"

        /// The event of that name, of a person without a list.
        case added

        /// The event of that name, of a person without a list.
        case replaced
    }

    public let kind: Kind
    public let listHash: String

    public init(_ kind: Kind, listHash: String) {
        self.kind = kind
        self.listHash = listHash
    }
}

/// The app's memory of a person.
public struct KnownUser: Sendable, Equatable {
    public let userId: String
    public let devices: [KnownDevice]
    public let list: KnownList?

    /// Those that the app has not shown yet.
    public var events: [DeviceEvent]

    /// Nil once it was accepted.
    public var question: KeyQuestion?

    public init(
        userId: String,
        devices: [KnownDevice],
        list: KnownList? = nil,
        events: [DeviceEvent] = [],
        question: KeyQuestion? = nil
    ) {
        self.userId = userId
        self.devices = devices
        self.list = list
        self.events = events
        self.question = question
    }
}

public struct KnownDevice: Sendable, Equatable {
    public let deviceId: String

    /// SHA-256 of the public key, base64.
    public let keyHash: String

    public init(deviceId: String, keyHash: String) {
        self.deviceId = deviceId
        self.keyHash = keyHash
    }
}

public struct KnownList: Sendable, Equatable {
    /// Base64.
    public let list: String
    public let vrfHash: String

    /// The leaf that holds the list's hash.
    public let index: Int

    /// This and `sinceSeq` are of the first list since this app knows the person, or since they have started over.
    public let sinceIndex: Int
    public let sinceSeq: Int

    public init(list: String, vrfHash: String, index: Int, sinceIndex: Int, sinceSeq: Int) {
        self.list = list
        self.vrfHash = vrfHash
        self.index = index
        self.sinceIndex = sinceIndex
        self.sinceSeq = sinceSeq
    }
}

/// Where the app keeps what it knows: see `FileKnownUserStore`.
public protocol KnownUserStore: Sendable {
    func get(_ userId: String) async throws -> KnownUser?

    func put(_ known: KnownUser) async throws
}

/// A store that forgets with the process.
public final class MemoryKnownUserStore: KnownUserStore {
    private let known = Locked<[String: KnownUser]>([:])

    public init() {}

    public func get(_ userId: String) async -> KnownUser? { known.with { $0[userId] } }

    public func put(_ known: KnownUser) async { self.known.with { $0[known.userId] = known } }
}

/// A question that is open stays so for the keys that came since.
func questionAfter(_ known: KnownUser?, _ asked: KeyQuestion.Kind?, _ listHash: String) -> KeyQuestion? {
    (asked ?? known?.question?.kind).map { KeyQuestion($0, listHash: listHash) }
}

/// Names the devices of a person without a list, and their keys, in base64 of SHA-256. The ids are decimal uint64.
func unlistedDevicesHash(_ userId: String, _ devices: [KnownDevice]) -> String {
    let lines = devices.sorted { (uint64($0.deviceId) ?? 0) < (uint64($1.deviceId) ?? 0) }
        .map { "\($0.deviceId) \($0.keyHash)\n" }
    return encodeBase64(sha256(Array("callsign unlisted devices v1\n\(userId)\n\(lines.joined())".utf8)))
}

func changesOf(
    _ before: [KnownDevice],
    _ now: [KnownDevice],
    added: DeviceEvent.Kind,
    replaced: DeviceEvent.Kind
) -> [DeviceEvent] {
    func keyOf(_ devices: [KnownDevice], _ deviceId: String) -> String? {
        devices.first { isSame($0.deviceId, deviceId) }?.keyHash
    }
    let changed: [DeviceEvent] = now.compactMap { device in
        guard let keyHash = keyOf(before, device.deviceId) else { return DeviceEvent(added, deviceId: device.deviceId) }
        return isSame(keyHash, device.keyHash) ? nil : DeviceEvent(replaced, deviceId: device.deviceId)
    }
    let removed = before.filter { keyOf(now, $0.deviceId) == nil }
    return changed + removed.map { DeviceEvent(.removed, deviceId: $0.deviceId) }
}
