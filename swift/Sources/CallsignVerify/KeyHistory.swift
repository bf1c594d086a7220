// The own-key monitor: every key that was ever logged under a device's hash (`POST /api/get-key-history`), proven entry by entry
// and held against the keys the device itself has made. A second key under one hash is a legal tree; only its owner can tell that
// it is foreign.

/// The answer: entries oldest first, numbers as decimal texts.
public struct KeyHistory: Sendable, Equatable {
    public let entries: [KeyHistoryEntry]
    public let treeSize: String

    public init(entries: [KeyHistoryEntry], treeSize: String) {
        self.entries = entries
        self.treeSize = treeSize
    }
}

/// One entry of the answer.
public struct KeyHistoryEntry: Sendable, Equatable {
    public let index: String
    public let publicKey: String
    public let proof: String

    public init(index: String, publicKey: String, proof: String) {
        self.index = index
        self.publicKey = publicKey
        self.proof = proof
    }
}

/// Whose history was asked for; `vrfHash` is base64 of 64 octets.
public struct HistoryClaim: Sendable, Equatable {
    public let userId: UInt64
    public let deviceId: UInt64
    public let vrfHash: String

    public init(userId: UInt64, deviceId: UInt64, vrfHash: String) {
        self.userId = userId
        self.deviceId = deviceId
        self.vrfHash = vrfHash
    }
}

/// A key, base64, and the leaf that holds it.
public struct LoggedKey: Sendable, Equatable {
    public let index: Int
    public let publicKey: String

    public init(index: Int, publicKey: String) {
        self.index = index
        self.publicKey = publicKey
    }
}

/// Each of these entries, at least one, is in the log under the one hash; only the server vouches that there are no more.
public struct VerifiedHistory: Checkpointed, Sendable, Equatable {
    public let entries: [LoggedKey]
    public let checkpoint: SignedCheckpoint
}

/// A device's findings about the keys logged in its name.
public enum OwnKeys: Sendable, Equatable {
    /// The log holds exactly the device's own keys, and gives out the newest one.
    case clean

    /// `foreign` are logged, but not by this device: someone can be calling in its name. `missing` are made by this device, but
    /// not logged: other users get no key, or an older one. `outdated` is an own key, but not the newest one, although other
    /// users get it.
    case alert(foreign: [LoggedKey], missing: [String], outdated: [LoggedKey])
}

/// Checks a history: one checkpoint, ascending leaves, and for each entry the VRF proof of the claim, the same hash and the path
/// to the root. Refused at `history` for an answer that is no such list, else at the check that failed.
public func verifyKeyHistory(_ keys: LogKeys, _ claim: HistoryClaim, _ history: KeyHistory) -> Verdict<VerifiedHistory> {
    verdict { () throws(CheckFailed) in
        try prove(keys, claim, history.entries, treeSize: history.treeSize, indexOf: \.index) { entry throws(CheckFailed) in
            try parseResult(LookupResult(publicKey: entry.publicKey, vrfHash: claim.vrfHash, proof: entry.proof))
        }
    }
}

/// As `verifyKeyHistory`, of a stranger's JSON.
package func verifyKeyHistory(_ keys: LogKeys, _ claim: HistoryClaim, json: JSONValue?) -> Verdict<VerifiedHistory> {
    verdict { () throws(CheckFailed) in
        let entries = json?["entries"]?.array ?? []
        return try prove(keys, claim, entries, treeSize: json?["treeSize"]?.string, indexOf: { $0["index"]?.string }) {
            entry throws(CheckFailed) in try readResult(entry, vrfHash: claim.vrfHash)
        }
    }
}

/// Holds what is logged in a device's name against the keys it has made, oldest first, the last being the one in use. `given` is
/// the key that lookups return to other users.
public func compareOwnKeys(_ entries: [LoggedKey], _ ownKeys: [String], given: LoggedKey?) -> OwnKeys {
    func isOwn(_ key: LoggedKey) -> Bool { ownKeys.contains { isSame($0, key.publicKey) } }
    let foreign = entries.filter { !isOwn($0) }
    let missing = ownKeys.filter { own in !entries.contains { isSame($0.publicKey, own) } }
    let outdated = [given].compactMap { $0 }.filter { isOwn($0) && !isSame($0.publicKey, ownKeys.last ?? "") }
    if foreign.isEmpty && missing.isEmpty && outdated.isEmpty { return .clean }
    return .alert(foreign: foreign, missing: missing, outdated: outdated)
}

/// As above, where other users get the newest entry.
public func compareOwnKeys(_ entries: [LoggedKey], _ ownKeys: [String]) -> OwnKeys {
    compareOwnKeys(entries, ownKeys, given: entries.last)
}

private func prove<Entry>(
    _ keys: LogKeys,
    _ claim: HistoryClaim,
    _ entries: [Entry],
    treeSize: String?,
    indexOf: (Entry) -> String?,
    read: (Entry) throws(CheckFailed) -> ParsedResult
) throws(CheckFailed) -> VerifiedHistory {
    guard let treeSize, !entries.isEmpty else { throw CheckFailed(.history, "the answer has no entries") }
    let results = try readEntries(entries, indexOf: indexOf, read: read)
    let checkpoint = try openSignedCheckpoint(keys, oneCheckpoint(results))
    guard isSame(treeSize, "\(checkpoint.treeSize)") else {
        throw CheckFailed(.history, "it says tree size \(treeSize), its proofs \(checkpoint.treeSize)")
    }
    try assertHashes(keys, vrfInput(userID: claim.userId, deviceID: claim.deviceId), results, claim.vrfHash)
    for result in results {
        try assertIndex(result.proof.index, checkpoint)
        try assertIncluded(claim.vrfHash, result.publicKey, result.proof, checkpoint)
    }
    let logged = results.map { LoggedKey(index: $0.proof.index, publicKey: $0.publicKey) }
    return VerifiedHistory(entries: logged, checkpoint: checkpoint)
}

private func readEntries<Entry>(
    _ entries: [Entry],
    indexOf: (Entry) -> String?,
    read: (Entry) throws(CheckFailed) -> ParsedResult
) throws(CheckFailed) -> [ParsedResult] {
    var results: [ParsedResult] = []
    for entry in entries {
        let result = try read(entry)
        let index = result.proof.index
        guard isSame(indexOf(entry) ?? "", "\(index)") else {
            throw CheckFailed(.history, "an entry has the proof of leaf \(index) and another index")
        }
        if let previous = results.last?.proof.index, index <= previous {
            throw CheckFailed(.history, "leaf \(index) comes after leaf \(previous)")
        }
        results.append(result)
    }
    return results
}

private func oneCheckpoint(_ results: [ParsedResult]) throws(CheckFailed) -> String {
    guard let note = results.first?.proof.checkpoint, results.allSatisfy({ isSame($0.proof.checkpoint, note) }) else {
        throw CheckFailed(.history, "its entries rest on several checkpoints")
    }
    return note
}

/// Verifies one VRF proof, and checks only that the rest have the same hash. A server can make any number of different proofs for
/// one hash, so to verify each would let it keep a phone busy.
private func assertHashes(
    _ keys: LogKeys,
    _ input: [UInt8],
    _ results: [ParsedResult],
    _ vrfHash: String
) throws(CheckFailed) {
    guard let first = results.first else { return }
    try assertHash(try proveHash(keys, input, first.vrfProof), stated: vrfHash, asked: vrfHash)
    guard let other = results.first(where: { !isOfSameHash(first.vrfProof, $0.vrfProof) }) else { return }
    throw CheckFailed(.vrf, "the VRF proof of leaf \(other.proof.index) is not of the hash that was asked for")
}
