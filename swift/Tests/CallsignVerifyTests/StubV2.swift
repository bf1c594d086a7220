import TestSupport

@testable import CallsignVerify

/// The keys of a log as the vectors have them.
func keysOf(_ keys: JSONValue) throws -> LogKeys {
    let vrfPublicKey = try keys.text("vrfPublicKey")
    if let policy = keys.textOrNil("policy") { return try LogKeys.ofPolicy(policy, vrfPublicKey: vrfPublicKey) }
    return try LogKeys.ofVerifierKey(keys.text("vkey"), vrfPublicKey: vrfPublicKey, indexVkey: keys.textOrNil("indexVkey"))
}

/// The verdict on one lookup, as `test/support/index-lookups.ts` words it.
func indexVerdictOn(_ keys: LogKeys, _ example: JSONValue) throws -> String {
    let index = try known(keys.index, "index")
    let found: VerifiedIndex
    do {
        found = try verifyIndex(
            keys, index, vrfHash: example.text("vrfHash"), proof: example["proof"], nowMs: example.number("nowMs"),
            maxAgeMs: example.number("maxIndexAgeMs"))
    } catch let failed as CheckFailed {
        return "refused at \(failed.refusal.check.rawValue)"
    }
    let tail = try example["tail"]?.array.map { try $0.map { try known($0.int, "tail") } }
    let shown = try example.find("shown").map { ShownEntry(index: try $0.number("index"), treeSize: try $0.number("treeSize")) }
    switch judgeCompleteness(found, isProved: index.isRebuilt, tail: tail, shown: shown) {
    case .refused(let refusal): return "refused at \(refusal.check.rawValue)"
    case .unanswered(let unanswered): return "unanswered at \(unanswered.check?.rawValue ?? "nothing")"
    case .holds(let completeness): return completenessText(completeness)
    }
}

func completenessText(_ completeness: Completeness) -> String {
    guard case .complete(let indexes, let indexAgeMs, let isProved) = completeness else { return completeness.kind.rawValue }
    let age = indexAgeMs.map { "\($0)" } ?? "unknown"
    return "complete [\(indexes.map { "\($0)" }.joined(separator: ","))] age \(age) \(isProved ? "proved" : "unproved")"
}
