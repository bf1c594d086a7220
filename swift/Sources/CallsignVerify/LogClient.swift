// Everything an app does with its key transparency log: look keys up, watch its own, and compare answers with earlier ones, its
// own and other clients'.

import Foundation

/// A device to look up.
public struct DeviceToLookUp: Sendable, Equatable {
    public let userId: UInt64
    public let deviceId: UInt64

    /// Base64 of 64 octets.
    public let vrfHash: String

    /// The key, base64, that the app holds for the device, when it has one.
    public let publicKey: String?

    public init(userId: UInt64, deviceId: UInt64, vrfHash: String, publicKey: String? = nil) {
        self.userId = userId
        self.deviceId = deviceId
        self.vrfHash = vrfHash
        self.publicKey = publicKey
    }
}

/// This device, and every key it has made, base64: oldest first, the last one in use.
public struct OwnDevice: Sendable, Equatable {
    public let userId: UInt64
    public let deviceId: UInt64
    public let vrfHash: String
    public let publicKeys: [String]

    public init(userId: UInt64, deviceId: UInt64, vrfHash: String, publicKeys: [String]) {
        self.userId = userId
        self.deviceId = deviceId
        self.vrfHash = vrfHash
        self.publicKeys = publicKeys
    }
}

/// The keys logged in the device's name.
public struct OwnKeysReport: Sendable, Equatable {
    public internal(set) var ownKeys: OwnKeys
    public let entries: [LoggedKey]

    /// Nil when the server denies that there are any keys.
    public var checkpoint: SignedCheckpoint?

    /// Whether the index proves that there are no more.
    public var complete: Completeness.Kind = .unindexed

    /// Whether cosigners that rebuild the index vouch for that.
    public var isProved = false
}

/// The operations of `LogClient` that `ContactDevices` needs.
public protocol KeyLookups: Sendable {
    func lookUpAll(_ devices: [DeviceToLookUp]) async throws -> [Outcome<VerifiedKey>]

    func checkOwnKeys(_ device: OwnDevice) async throws -> Outcome<OwnKeysReport>

    func verifyAbsence(userId: UInt64, deviceId: UInt64, absent: AbsentList?) async throws -> Outcome<Absence>
}

/// One log as one installation of an app sees it. It believes only answers that verify under its keys.
public final class LogClient: KeyLookups {
    private let keys: LogKeys
    private let maxAgeMs: Int?
    private let nowMs: @Sendable () -> Int
    private let requests: LogRequests
    private let pin: CheckpointPin

    /// Nil where the app does not know the index's key.
    private let index: IndexCheck?

    /// - Parameters:
    ///   - url: the log's prefix, `https://kt.example.org`. Its server is trusted with nothing.
    ///   - store: where the highest checkpoint is kept: see `FileCheckpointStore`.
    ///   - timeoutMs: how long one request with its answer may take.
    ///   - maxAgeMs: how long ago the witnesses of the policy may have seen a checkpoint that the log answers with; unless given,
    ///     any time. Also how long a checkpoint may stay uncompared or stale; unless given, a day.
    ///   - nowMs: the clock, POSIX time in milliseconds.
    ///   - mirror: the prefix of a copy of the log's tiles, asked where the log's own are missing or wrong. Trusted with nothing
    ///     either.
    ///   - completeness: whether answers have to prove by the log's index that they are complete; unless given, `demand` where
    ///     the policy names the index, and else `whenOffered`. `store` keeps a checkpoint of the index, too, under an origin of
    ///     its own.
    ///   - maxIndexAgeMs: how long ago the quorum may have seen the newest leaf of the index; unless given, a day.
    /// - Throws: `keyInvalid` for `maxAgeMs` without witnesses: a checkpoint has no time of its own.
    public init(
        keys: LogKeys,
        url: String,
        store: any CheckpointStore,
        transport: any LogTransport = URLSessionTransport(),
        timeoutMs: Int = 20_000,
        maxAgeMs: Int? = nil,
        nowMs: @escaping @Sendable () -> Int = { Int(Date().timeIntervalSince1970 * 1_000) },
        mirror: String? = nil,
        completeness: CompletenessDemand? = nil,
        maxIndexAgeMs: Int? = nil
    ) throws(LogError) {
        if maxAgeMs != nil && keys.quorum == nil { throw .keyInvalid("maxAgeMs needs a policy with a quorum of witnesses") }
        self.keys = keys
        self.maxAgeMs = maxAgeMs
        self.nowMs = nowMs
        func requestsOf(_ prefix: String) -> LogRequests { LogRequests(url: prefix, transport: transport, timeoutMs: timeoutMs) }
        let prefixes = [url] + (mirror.map { [$0] } ?? [])
        let sources = prefixes.map(requestsOf)
        let pin = CheckpointPin(keys, store, tilesOf(sources), maxAgeMs: maxAgeMs)
        requests = requestsOf(url)
        self.pin = pin
        index = keys.index.map { index in
            let tiles = tilesOf(prefixes.map { requestsOf("\(withoutLastSlashes($0))/index") })
            let tails = zip(tilesOf(sources), entriesOf(sources)).map { TailSource(tiles: $0, entries: $1) }
            return IndexCheck(
                keys: keys,
                index: index,
                demand: completeness ?? (index.isDemanded ? .demand : .whenOffered),
                maxAgeMs: maxIndexAgeMs ?? indexAgeMsMax,
                nowMs: nowMs,
                logPin: pin,
                pin: CheckpointPin(index.log, store, tiles, maxAgeMs: maxAgeMs, mayBegin: true),
                tails: IndexTails(tails)
            )
        }
    }

    /// The newest key that the log holds for a device. Throws what the store throws.
    public func lookUp(_ device: DeviceToLookUp) async throws -> Outcome<VerifiedKey> {
        try await lookUpAll([device]).first ?? .unanswered(Unanswered("there is no outcome"))
    }

    /// As `lookUp` for many devices, 64 in a request; the outcomes in their order.
    public func lookUpAll(_ devices: [DeviceToLookUp]) async throws -> [Outcome<VerifiedKey>] {
        var outcomes: [Outcome<VerifiedKey>] = []
        for start in stride(from: 0, to: devices.count, by: lookupTargetsMax) {
            outcomes += try await lookUpTogether(Array(devices[start...].prefix(lookupTargetsMax)))
        }
        return outcomes
    }

    /// Asks for every key that was ever logged in this device's name and holds them against its own: to be called at each start
    /// of the app, and from time to time. A history that lacks what a lookup shows is refused at `history`.
    public func checkOwnKeys(_ device: OwnDevice) async throws -> Outcome<OwnKeysReport> {
        let newest: VerifiedKey
        switch try await lookUp(DeviceToLookUp(userId: device.userId, deviceId: device.deviceId, vrfHash: device.vrfHash)) {
        case .holds(let found): newest = found
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered):
            guard isDenial(unanswered) else { return .unanswered(unanswered) }
            return .holds(OwnKeysReport(ownKeys: compareOwnKeys([], device.publicKeys), entries: []))
        }
        switch try await keyHistory(device) {
        case .holds(let history): return compared(device, newest, history)
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered):
            guard isDenial(unanswered) else { return .unanswered(unanswered) }
            return .refused(incomplete(newest.index, "the answer that there is no history"))
        }
    }

    /// Fetches the current checkpoint and holds it against the highest one seen.
    public func refreshCheckpoint() async throws -> Outcome<VerifiedCheckpoint> {
        let floorSize = try await pinnedSize()
        let note: String
        do {
            note = try await requests.checkpoint()
        } catch let error as NoAnswer {
            return .unanswered(error.unanswered)
        }
        return try await fitting(verifyCheckpoint(keys, note), floorSize)
    }

    /// Holds a note that someone else was given by this log, or of its index, against the highest one seen here. When the log
    /// signed both and they do not fit, it shows different trees to different people, and `evidence` proves it.
    public func compareWith(_ note: String) async throws -> Outcome<VerifiedCheckpoint> {
        if let index, note.utf8.starts(with: "\(indexOriginOf(keys.origin))\n".utf8) { return try await index.compareWith(note) }
        switch verifyCheckpoint(keys, note) {
        case .refused(let refusal): return .refused(refusal)
        case .holds(let verdict): return try await pin.accept(verdict.checkpoint, nowMs: nowMs()).outcome(verdict)
        }
    }

    /// The highest checkpoint seen: give its note to other clients for `compareWith`.
    public func highestCheckpoint() async throws -> SignedCheckpoint? { try await pin.highest() }

    /// The highest checkpoint of the index, for the same.
    public func highestIndexCheckpoint() async throws -> SignedCheckpoint? { try await index?.highestCheckpoint() }

    /// Whether nothing is in the log for a user and device, as their server says it proves with `absent`. Refused at
    /// `completeness` where the app demands that proof and there is none.
    public func verifyAbsence(userId: UInt64, deviceId: UInt64, absent: AbsentList?) async throws -> Outcome<Absence> {
        guard let index else { return .holds(Absence(completeness: .unindexed)) }
        return try await index.absent(userId, deviceId, absent)
    }

    private func lookUpTogether(_ devices: [DeviceToLookUp]) async throws -> [Outcome<VerifiedKey>] {
        let floorSize = try await pinnedSize()
        var asked: [String: JSONValue] = ["targets": .array(devices.map { ["publicKeyHash": .string($0.vrfHash)] })]
        if index?.isAsked == true { asked["index"] = true }
        let answer: JSONValue
        do {
            answer = try await requests.post("api/get-public-keys", .object(asked))
        } catch let error as NoAnswer {
            return devices.map { _ in .unanswered(error.unanswered) }
        }
        guard let results = answer["results"]?.array, results.count == devices.count else {
            let detail = "the answer does not have one result for each of \(devices.count) devices"
            return devices.map { _ in .refused(Refusal(.proof, detail)) }
        }
        var outcomes: [Outcome<VerifiedKey>] = []
        for (device, result) in zip(devices, results) { outcomes.append(try await judged(device, result, floorSize)) }
        return outcomes
    }

    private func judged(_ device: DeviceToLookUp, _ result: JSONValue, _ floorSize: Int) async throws -> Outcome<VerifiedKey> {
        let claim = LookupClaim(
            userId: device.userId, deviceId: device.deviceId, vrfHash: device.vrfHash, publicKey: device.publicKey)
        let outcome = try await fitting(verifyLookup(keys, claim, json: result), floorSize)
        guard case .holds(let verified) = outcome, let index, index.isAsked else { return outcome }
        return try await index.complete(verified, result["indexProof"])
    }

    private func keyHistory(_ device: OwnDevice) async throws -> Outcome<VerifiedHistory> {
        let floorSize = try await pinnedSize()
        let answer: JSONValue
        do {
            answer = try await requests.post("api/get-key-history", ["publicKeyHash": .string(device.vrfHash)])
        } catch let error as NoAnswer {
            return .unanswered(error.unanswered)
        }
        let claim = HistoryClaim(userId: device.userId, deviceId: device.deviceId, vrfHash: device.vrfHash)
        return try await fitting(verifyKeyHistory(keys, claim, json: answer), floorSize)
    }

    private func compared(_ device: OwnDevice, _ newest: VerifiedKey, _ history: VerifiedHistory) -> Outcome<OwnKeysReport> {
        var shown = [newest.index]
        if case .complete(let indexes, _, _) = newest.completeness { shown = indexes }
        let entries = history.entries
        if let leftOut = shown.first(where: { index in !entries.contains { $0.index == index } }) {
            return .refused(incomplete(leftOut, "the history at tree size \(history.checkpoint.treeSize)"))
        }
        let given = LoggedKey(index: newest.index, publicKey: newest.publicKey)
        let proved = [newest.completeness]
        return .holds(
            OwnKeysReport(
                ownKeys: compareOwnKeys(entries, device.publicKeys, given: given),
                entries: entries,
                checkpoint: history.checkpoint,
                complete: leastOf(proved),
                isProved: areProved(proved)
            )
        )
    }

    private func pinnedSize() async throws -> Int { try await pin.highest()?.treeSize ?? 0 }

    /// Holds once witnesses have seen its checkpoint and it fits the earlier ones.
    private func fitting<Verified: Checkpointed>(
        _ verdict: Verdict<Verified>,
        _ floorSize: Int
    ) async throws -> Outcome<Verified> {
        switch verdict {
        case .refused(let refusal): return .refused(refusal)
        case .holds(let verified):
            let checkpoint = verified.checkpoint
            if case .refused(let refusal) = verifyWitnesses(keys, checkpoint.note, nowMs: nowMs(), maxAgeMs: maxAgeMs) {
                return .refused(refusal)
            }
            return try await pin.accept(checkpoint, nowMs: nowMs(), floorSize: floorSize).outcome(verified)
        }
    }

    /// Whether the server says that nothing is logged under the hash.
    private func isDenial(_ unanswered: Unanswered) -> Bool { isSame(unanswered.code ?? "", "UNKNOWN_PUBLIC_KEY_HASH") }

    private func incomplete(_ index: Int, _ history: String) -> Refusal {
        Refusal(.history, "\(history) leaves out leaf \(index), which a lookup shows")
    }
}

/// Ways to read tiles: each begins with another source, and falls back where it lacks a tile. Tiles prove nothing one by one, so
/// one way after the other is tried against the signed root.
private func tilesOf(_ sources: [LogRequests]) -> [FetchTile] {
    sources.indices.map { first in
        { tile in try await fromAny(sources, first) { try await $0.tile(tile) } }
    }
}

private func entriesOf(_ sources: [LogRequests]) -> [FetchEntries] {
    sources.indices.map { first in
        { bundle in try await fromAny(sources, first) { try await $0.entries(bundle) } }
    }
}

private func fromAny<Part>(
    _ sources: [LogRequests],
    _ first: Int,
    _ ask: (LogRequests) async throws -> Part
) async throws -> Part {
    let order = [first] + sources.indices.filter { $0 != first }
    for source in order.dropLast() {
        do {
            return try await ask(sources[source])
        } catch is NoAnswer {
            continue
        }
    }
    return try await ask(sources[order[order.count - 1]])
}

private let lookupTargetsMax = 64

/// Leaves come every quarter of an hour, and a clock may be wrong.
private let indexAgeMsMax = 24 * 3_600_000
