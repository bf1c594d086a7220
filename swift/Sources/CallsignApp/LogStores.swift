// What this app remembers of the log, in its storage: for each user of the app and each log, since a development server that
// starts anew has another log of the same name.
import CallsignVerify

struct LogStores: Sendable {
    private let storage: any AppStorage
    private let keys: LogKeys
    private let scope: String

    init(_ storage: any AppStorage, userId: UInt64, keys: LogKeys) {
        self.storage = storage
        self.keys = keys
        scope = "\(userId).\(keys.name)"
    }

    var checkpoints: any CheckpointStore { Checkpoints(storage: storage, origin: keys.origin, key: "checkpoint.\(scope)") }

    var knownUsers: any KnownUserStore { KnownUsers(storage: storage, key: "known.\(scope)") }

    /// The person of a link whose devices have not been verified yet.
    func expected(_ userId: UInt64) async throws -> ListedPerson? {
        try await storage.read(expectedKey(userId)) { kept in
            kept.text("listHash").map { ListedPerson(userId: userId, listHash: $0) }
        }
    }

    func putExpected(_ person: ListedPerson) async throws {
        try await storage.write(expectedKey(person.userId), bodyOf(["listHash": person.listHash]))
    }

    func forgetExpected(_ userId: UInt64) async throws { try await storage.write(expectedKey(userId), nil) }

    /// Proofs that the log has lied, the oldest first.
    func evidence() async throws -> [Evidence] {
        try await storage.read("evidence.\(scope)") { kept in
            let pairs = (kept["pairs"]?.array ?? []).map { pair -> Evidence? in
                guard let known = pair.object?.text("known"), let seen = pair.object?.text("seen") else { return nil }
                return Evidence(known: known, seen: seen)
            }
            return pairs.contains { $0 == nil } || kept["pairs"]?.array == nil ? nil : pairs.compactMap { $0 }
        } ?? []
    }

    func addEvidence(_ evidence: Evidence) async throws {
        let all = try await self.evidence()
        if all.count >= Self.evidenceMax || all.contains(evidence) { return }
        let pairs = (all + [evidence]).map { JSONValue.object(bodyOf(["known": $0.known, "seen": $0.seen])) }
        try await storage.write("evidence.\(scope)", ["pairs": .array(pairs)])
    }

    private func expectedKey(_ userId: UInt64) -> String { "expected.\(scope).\(userId)" }

    /// Each of them is proof enough.
    private static let evidenceMax = 16
}

private struct Checkpoints: CheckpointStore {
    let storage: any AppStorage
    let origin: String
    let key: String

    func get(_ origin: String) async throws -> KeptCheckpoint? {
        try await storage.read(keyOf(origin)) { kept in try? parseKeptCheckpoint(JSONValue.object(kept).text) }
    }

    func put(_ kept: KeptCheckpoint) async throws {
        try await storage.write(keyOf(kept.checkpoint.origin), objectIn(formatKeptCheckpoint(kept)))
    }

    /// The name under which the checkpoint of the log, or of its index, is kept.
    private func keyOf(_ origin: String) -> String { isSame(origin, self.origin) ? key : "\(key).index" }
}

private struct KnownUsers: KnownUserStore {
    let storage: any AppStorage
    let key: String

    func get(_ userId: String) async throws -> KnownUser? {
        try await storage.read("\(key).\(userId)") { kept in
            (try? parseKnownUser(JSONValue.object(kept).text)).flatMap { $0.userId == userId ? $0 : nil }
        }
    }

    func put(_ known: KnownUser) async throws {
        try await storage.write("\(key).\(known.userId)", objectIn(formatKnownUser(known)))
    }
}
