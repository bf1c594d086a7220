// Checkpoints as clients keep and exchange them: what one says, with the signed note that proves it.

/// A checkpoint that the log signed. `rootHash` is base64, `note` the signed text as it came.
public struct SignedCheckpoint: Sendable, Equatable {
    public let origin: String
    public let treeSize: Int
    public let rootHash: String
    public let note: String

    public init(origin: String, treeSize: Int, rootHash: String, note: String) {
        self.origin = origin
        self.treeSize = treeSize
        self.rootHash = rootHash
        self.note = note
    }

    public static func == (one: SignedCheckpoint, other: SignedCheckpoint) -> Bool {
        one.treeSize == other.treeSize && isSame(one.rootHash, other.rootHash) && isSame(one.origin, other.origin)
            && isSame(one.note, other.note)
    }
}

/// The log signed this checkpoint.
public struct VerifiedCheckpoint: Checkpointed, Equatable {
    public let checkpoint: SignedCheckpoint
}

/// A verdict that rests on a checkpoint.
protocol Checkpointed: Sendable {
    var checkpoint: SignedCheckpoint { get }
}

/// The second tree beside the first one.
public enum SizeComparison: Sendable {
    case same, smaller, larger
}

/// The checkpoint in a note from anywhere. Refused at `origin`, `checkpoint` or `signature`.
public func verifyCheckpoint(_ keys: LogKeys, _ note: String) -> Verdict<VerifiedCheckpoint> {
    do {
        return .holds(VerifiedCheckpoint(checkpoint: try openSignedCheckpoint(keys, note)))
    } catch {
        return .refused(error.refusal)
    }
}

/// Holds a checkpoint against one known before, of the same log. One size with two roots is a `fork`, with both notes as
/// evidence; whether a larger tree begins with the smaller one is for `consistencyFromTiles` to say.
public func compareCheckpoints(known: SignedCheckpoint, seen: SignedCheckpoint) -> Verdict<SizeComparison> {
    guard isSame(seen.origin, known.origin) else {
        return .refused(Refusal(.origin, "checkpoints of \(known.origin) and of \(seen.origin)"))
    }
    if seen.treeSize < known.treeSize { return .holds(.smaller) }
    if seen.treeSize > known.treeSize { return .holds(.larger) }
    if isSame(seen.rootHash, known.rootHash) { return .holds(.same) }
    let evidence = Evidence(known: known.note, seen: seen.note)
    return .refused(Refusal(.fork, "tree size \(seen.treeSize) was signed with two roots", evidence: evidence))
}

/// As `verifyCheckpoint`, but throws what it would return.
func openSignedCheckpoint(_ keys: LogKeys, _ note: String) throws(CheckFailed) -> SignedCheckpoint {
    if let opened = keys.lastOpened.find({ isSame($0.note, note) }) { return opened }
    let opened = try openUnknown(keys, note)
    keys.lastOpened.keep(opened)
    return opened
}

private func openUnknown(_ keys: LogKeys, _ note: String) throws(CheckFailed) -> SignedCheckpoint {
    let origin = firstLine(of: note)
    guard isSame(origin, keys.origin) else {
        throw CheckFailed(.origin, "checkpoint is of \"\(quotable(origin, scalars: 80))\", not of \(keys.origin)")
    }
    let text = try openLogNote(note, keys.verifiers)
    let checkpoint = try during(.checkpoint) { () throws(LogError) in try parseCheckpoint(text) }
    if checkpoint.treeSize == 0 && checkpoint.rootHash != emptyRoot {
        throw CheckFailed(.checkpoint, "the tree without entries has another root")
    }
    let rootHash = encodeBase64(checkpoint.rootHash)
    return SignedCheckpoint(origin: origin, treeSize: checkpoint.treeSize, rootHash: rootHash, note: note)
}

private func openLogNote(_ note: String, _ verifiers: [VerifierKey]) throws(CheckFailed) -> String {
    do {
        return try openNote(note, verifiers).text
    } catch {
        throw CheckFailed(error.code == .signatureInvalid ? .signature : .checkpoint, error.message)
    }
}
