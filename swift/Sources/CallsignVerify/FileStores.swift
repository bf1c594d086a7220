// Stores of one file for each log or contact, in a folder that the app keeps for them.

import Foundation

/// Keeps checkpoints in a folder, which it makes. A crash or power cut leaves the old state or the new one. `get` throws
/// `malformed` for a damaged file. Exclude the folder from backups: it belongs to this installation.
public final class FileCheckpointStore: CheckpointStore {
    private let files: JSONFiles

    public init(folder: URL) { files = JSONFiles(folder: folder) }

    public func get(_ origin: String) async throws -> KeptCheckpoint? { try await files.read(origin).map(keptCheckpoint) }

    public func put(_ kept: KeptCheckpoint) async throws { try await files.write(kept.checkpoint.origin, json(of: kept)) }
}

/// Keeps what is known of contacts in a folder, as `FileCheckpointStore` keeps checkpoints.
public final class FileKnownUserStore: KnownUserStore {
    private let files: JSONFiles

    public init(folder: URL) { files = JSONFiles(folder: folder) }

    public func get(_ userId: String) async throws -> KnownUser? { try await files.read(userId).map(knownUser) }

    public func put(_ known: KnownUser) async throws { try await files.write(known.userId, json(of: known)) }
}

/// A text for a store of the app's own.
public func formatKeptCheckpoint(_ kept: KeptCheckpoint) -> String { json(of: kept).text }

/// Reads what `formatKeptCheckpoint` gave. Throws `malformed` for another text.
public func parseKeptCheckpoint(_ text: String) throws(LogError) -> KeptCheckpoint {
    try keptCheckpoint(try object(in: Array(text.utf8)))
}

/// A text for a store of the app's own.
public func formatKnownUser(_ known: KnownUser) -> String { json(of: known).text }

/// Reads what `formatKnownUser` gave. Throws `malformed` for another text.
public func parseKnownUser(_ text: String) throws(LogError) -> KnownUser { try knownUser(try object(in: Array(text.utf8))) }

private func object(in octets: [UInt8]) throws(LogError) -> JSONValue {
    guard let value = JSONValue(octets: octets), value.object != nil else { throw damaged }
    return value
}

private func keptCheckpoint(_ members: JSONValue) throws(LogError) -> KeptCheckpoint {
    let checkpoint = SignedCheckpoint(
        origin: try members.storedText("origin"),
        treeSize: try members.storedNumber("treeSize"),
        rootHash: try members.storedText("rootHash"),
        note: try members.storedText("note")
    )
    var pending: [String] = []
    for note in try members.storedList("pending") {
        guard let text = note.string else { throw damaged }
        pending.append(text)
    }
    let openSinceMs = members["openSinceMs"] == nil ? nil : try members.storedNumber("openSinceMs")
    return KeptCheckpoint(checkpoint: checkpoint, pending: pending, openSinceMs: openSinceMs)
}

private func json(of kept: KeptCheckpoint) -> JSONValue {
    var members: [String: JSONValue] = [
        "origin": .string(kept.checkpoint.origin),
        "treeSize": JSONValue(kept.checkpoint.treeSize),
        "rootHash": .string(kept.checkpoint.rootHash),
        "note": .string(kept.checkpoint.note),
        "pending": .array(kept.pending.map(JSONValue.string)),
    ]
    members["openSinceMs"] = kept.openSinceMs.map { JSONValue($0) }
    return .object(members)
}

private func knownUser(_ members: JSONValue) throws(LogError) -> KnownUser {
    var devices: [KnownDevice] = []
    for device in try members.storedList("devices") {
        devices.append(KnownDevice(deviceId: try device.storedText("deviceId"), keyHash: try device.storedText("keyHash")))
    }
    var events: [DeviceEvent] = []
    for event in try members.storedList("events") {
        guard let kind = DeviceEvent.Kind(rawValue: try event.storedText("kind")) else { throw damaged }
        events.append(DeviceEvent(kind, deviceId: event["deviceId"]?.string))
    }
    return KnownUser(
        userId: try members.storedText("userId"),
        devices: devices,
        list: try knownList(members["list"]),
        events: events,
        question: try question(members["question"])
    )
}

private func knownList(_ members: JSONValue?) throws(LogError) -> KnownList? {
    guard let members else { return nil }
    return KnownList(
        list: try members.storedText("list"),
        vrfHash: try members.storedText("vrfHash"),
        index: try members.storedNumber("index"),
        sinceIndex: try members.storedNumber("sinceIndex"),
        sinceSeq: try members.storedNumber("sinceSeq")
    )
}

private func question(_ members: JSONValue?) throws(LogError) -> KeyQuestion? {
    guard let members else { return nil }
    guard let kind = KeyQuestion.Kind(rawValue: try members.storedText("kind")) else { throw damaged }
    return KeyQuestion(kind, listHash: try members.storedText("listHash"))
}

private func json(of known: KnownUser) -> JSONValue {
    var members: [String: JSONValue] = [
        "userId": .string(known.userId),
        "devices": .array(known.devices.map { ["deviceId": .string($0.deviceId), "keyHash": .string($0.keyHash)] }),
        "events": .array(known.events.map(json)),
    ]
    members["list"] = known.list.map(json)
    members["question"] = known.question.map { ["kind": .string($0.kind.rawValue), "listHash": .string($0.listHash)] }
    return .object(members)
}

private func json(of list: KnownList) -> JSONValue {
    [
        "list": .string(list.list),
        "vrfHash": .string(list.vrfHash),
        "index": JSONValue(list.index),
        "sinceIndex": JSONValue(list.sinceIndex),
        "sinceSeq": JSONValue(list.sinceSeq),
    ]
}

private func json(of event: DeviceEvent) -> JSONValue {
    var members: [String: JSONValue] = ["kind": .string(event.kind.rawValue)]
    members["deviceId"] = event.deviceId.map(JSONValue.string)
    return .object(members)
}

/// One JSON file for each name.
private final class JSONFiles: Sendable {
    private let files: AtomicFiles

    init(folder: URL) { files = AtomicFiles(folder: folder) }

    func read(_ name: String) async throws -> JSONValue? { try await files.read(fileOf(name)).map(object) }

    func write(_ name: String, _ members: JSONValue) async throws {
        try await files.write(fileOf(name), Array(members.text.utf8))
    }

    /// Origins hold characters that no file name can.
    private func fileOf(_ name: String) -> String { "\(hex(sha256(Array(name.utf8)))).json" }
}

extension JSONValue {
    fileprivate func storedText(_ name: String) throws(LogError) -> String {
        guard let text = self[name]?.string else { throw damaged }
        return text
    }

    fileprivate func storedNumber(_ name: String) throws(LogError) -> Int {
        guard let number = self[name]?.int else { throw damaged }
        return number
    }

    fileprivate func storedList(_ name: String) throws(LogError) -> [JSONValue] {
        guard let list = self[name]?.array else { throw damaged }
        return list
    }
}

private let damaged = LogError.malformed("a file of the store is damaged")
