// Whether independent witnesses have seen a checkpoint, and how lately. Without them the log's server can show each client a
// tree of its own, or an old one for ever, until two clients compare.

/// The newest time at which the quorum had seen the checkpoint, in POSIX milliseconds; nil where none is asked for.
public struct Witnessed: Sendable, Equatable {
    public let atMs: Int?
}

/// The last note that was looked at.
struct WitnessedNote: Sendable {
    let note: String
    let atMs: Int?
}

/// Holds the cosignatures of a checkpoint against the app's policy. `nowMs` is POSIX time in milliseconds; `maxAgeMs` says how
/// old `Witnessed.atMs` may be. Refused at `witnesses` or `stale`, and where `verifyCheckpoint` refuses it.
public func verifyWitnesses(_ keys: LogKeys, _ note: String, nowMs: Int, maxAgeMs: Int? = nil) -> Verdict<Witnessed> {
    guard let quorum = keys.quorum else { return .holds(Witnessed(atMs: nil)) }
    let atMs: Int?
    do {
        atMs = try witnessedAtMs(keys, quorum, note)
    } catch {
        return .refused(error.refusal)
    }
    guard let atMs else {
        return .refused(Refusal(.witnesses, "checkpoint has no cosignatures of the quorum \(quorum.name)"))
    }
    if let maxAgeMs, nowMs - atMs > maxAgeMs {
        return .refused(Refusal(.stale, "the quorum \(quorum.name) saw the checkpoint \((nowMs - atMs) / 1_000) s ago"))
    }
    return .holds(Witnessed(atMs: atMs))
}

private func witnessedAtMs(_ keys: LogKeys, _ quorum: QuorumMember, _ note: String) throws(CheckFailed) -> Int? {
    if let last = keys.lastWitnessed.with({ $0 }), isSame(last.note, note) { return last.atMs }
    _ = try openSignedCheckpoint(keys, note)
    let read = try during(.checkpoint) { () throws(LogError) in try readNote(note) }
    let seconds = quorumSeconds(quorum) { witness in
        read.signatures
            .filter { $0.isOf(witness.key.name, witness.key.keyId) }
            .compactMap { cosignedAtSeconds(read.text, witness.key, $0.signature) }
            .max()
    }
    let atMs = seconds.map { $0 * 1_000 }
    keys.lastWitnessed.with { $0 = WitnessedNote(note: note, atMs: atMs) }
    return atMs
}
