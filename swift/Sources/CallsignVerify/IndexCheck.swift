// The index of one log as one installation of an app sees it: whether it proves answers complete.

/// Whether answers have to prove by the log's index that they are complete, by the name that `@callsign/sdk/client` gives it.
public enum CompletenessDemand: String, Sendable, CaseIterable {
    /// An answer that does not prove that it is complete is refused at `completeness`.
    case demand

    /// One without a proof is taken, until an index has been verified once: that is remembered with the checkpoints.
    case whenOffered = "when-offered"

    /// No index is asked.
    case off
}

/// A user without a device list, as their server names them: nothing is under the hash of their list.
public struct AbsentList: Sendable, Equatable {
    /// Base64.
    public let vrfHash: String

    /// Base64 of 80 octets.
    public let vrfProof: String

    /// The JSON text of that member, where there is one.
    public let indexProof: String?

    public init(vrfHash: String, vrfProof: String, indexProof: String? = nil) {
        self.vrfHash = vrfHash
        self.vrfProof = vrfProof
        self.indexProof = indexProof
    }
}

/// Nothing was logged for this user and device, as far as `completeness` says.
public struct Absence: Sendable, Equatable {
    public let completeness: Completeness
}

/// Its functions throw what the store throws.
struct IndexCheck: Sendable {
    let keys: LogKeys
    let index: IndexKeys
    let demand: CompletenessDemand

    /// How many milliseconds old the newest leaf of the index may be.
    let maxAgeMs: Int
    let nowMs: @Sendable () -> Int

    /// Pins the log.
    let logPin: CheckpointPin

    /// Pins the output log of its index.
    let pin: CheckpointPin
    let tails: IndexTails

    /// Whether answers are asked for a proof.
    var isAsked: Bool { demand != .off }

    /// The verdict on an answer, with what its proof says of it; `proof` is nil where it has none.
    func complete(_ verdict: VerifiedKey, _ proof: JSONValue?) async throws -> Outcome<VerifiedKey> {
        let checkpoint = verdict.checkpoint
        let shown = ShownEntry(index: verdict.index, treeSize: checkpoint.treeSize)
        switch try await judge(verdict.vrfHash, proof, checkpoint, shown) {
        case .holds(let completeness):
            var complete = verdict
            complete.completeness = completeness
            return .holds(complete)
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): return .unanswered(unanswered)
        }
    }

    /// Whether nothing is in the log for a user and device, up to the highest checkpoint seen.
    func absent(_ userId: UInt64, _ deviceId: UInt64, _ absent: AbsentList?) async throws -> Outcome<Absence> {
        if !isAsked { return .holds(Absence(completeness: .unindexed)) }
        let vrfHash: String
        do throws(CheckFailed) {
            vrfHash = try absent.map { absent throws(CheckFailed) in
                try namedHash(vrfInput(userID: userId, deviceID: deviceId), absent)
            } ?? ""
        } catch {
            return .refused(error.refusal)
        }
        // A text that is no JSON is no proof.
        let proof = absent?.indexProof.map { JSONValue($0) ?? .null }
        switch try await judge(vrfHash, proof, try await logPin.highest(), nil) {
        case .holds(let completeness): return .holds(Absence(completeness: completeness))
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): return .unanswered(unanswered)
        }
    }

    /// As `LogClient.compareWith`.
    func compareWith(_ note: String) async throws -> Outcome<VerifiedCheckpoint> {
        switch verifyCheckpoint(index.log, note) {
        case .refused(let refusal): return .refused(refusal)
        case .holds(let verdict): return try await pin.accept(verdict.checkpoint, nowMs: nowMs()).outcome(verdict)
        }
    }

    func highestCheckpoint() async throws -> SignedCheckpoint? { try await pin.highest() }

    private func judge(
        _ vrfHash: String,
        _ proof: JSONValue?,
        _ newest: SignedCheckpoint?,
        _ shown: ShownEntry?
    ) async throws -> Outcome<Completeness> {
        var isDemanded = demand == .demand
        if !isDemanded { isDemanded = try await pin.hasSeen() }
        guard let proof else {
            return isDemanded ? refused("the answer has no proof from the index") : .holds(.unindexed)
        }
        let found: VerifiedIndex
        do {
            found = try verifyIndex(keys, index, vrfHash: vrfHash, proof: proof, nowMs: nowMs(), maxAgeMs: maxAgeMs)
        } catch {
            return .refused(error.refusal)
        }
        // Both checkpoints have to fit those seen before.
        for (pin, seen) in [(logPin, found.input), (pin, found.output)] {
            switch try await pin.accept(seen, nowMs: nowMs()) {
            case .accepted: continue
            case .refused(let refusal): return .refused(refusal)
            case .open(let unanswered): return .unanswered(unanswered)
            }
        }
        let tail: IndexTail?
        switch try await tailAfter(found.input, newest ?? found.input) {
        case .holds(let read): tail = read
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): return .unanswered(unanswered)
        }
        if tail == nil && isDemanded {
            return refused("the log has more entries since the newest leaf of the index than are read")
        }
        return judgeCompleteness(found, isProved: index.isRebuilt, tail: tail?.under(vrfHash), shown: shown)
    }

    /// Nil where there is more than anyone has to read.
    private func tailAfter(_ older: SignedCheckpoint, _ newer: SignedCheckpoint) async throws -> Outcome<IndexTail?> {
        if newer.treeSize <= older.treeSize { return .holds(IndexTail(indexes: [:])) }
        if newer.treeSize - older.treeSize > IndexTails.entriesMax { return .holds(nil) }
        switch try await tails.read(older: older, newer: newer) {
        case .holds(let tail): return .holds(tail)
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): return .unanswered(unanswered)
        }
    }

    /// Throws unless the VRF proves the hash.
    private func namedHash(_ input: [UInt8], _ absent: AbsentList) throws(CheckFailed) -> String {
        guard absent.vrfProof.utf16.count <= proofCharactersMax else {
            throw CheckFailed(.proof, "the server names no hash that has nothing under it")
        }
        let vrfProof = try during(.proof) { () throws(LogError) in try decodeBase64(absent.vrfProof) }
        try assertHash(proveHash(keys, input, vrfProof), stated: absent.vrfHash, asked: absent.vrfHash)
        return absent.vrfHash
    }

    private func refused<Value>(_ detail: String) -> Outcome<Value> { .refused(Refusal(.completeness, detail)) }
}

/// 80 octets in base64.
private let proofCharactersMax = 108
