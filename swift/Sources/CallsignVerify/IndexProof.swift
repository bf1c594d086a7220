// One lookup in the log's index, which says at which leaves of the log a hash has entries: all of them up to the tree of the
// index's newest leaf, or none. Checked without a network; what the log holds beyond that tree is for `IndexCheck` to read.

/// An index's claim about a hash: it has entries at `indexes`, ascending, and at no other leaf of the tree of `input`, a
/// checkpoint of the log. `output` is a checkpoint of the index's own log. `ageMs` is how long ago the index's quorum had last
/// seen it; nil where none is asked for.
struct VerifiedIndex: Sendable {
    let indexes: [Int]
    let input: SignedCheckpoint
    let output: SignedCheckpoint
    let ageMs: Int?
}

/// Holds an `indexProof` of a stranger's JSON against the keys of log and index. `vrfHash` is base64, and was proven. `nowMs`
/// is POSIX time, and `maxAgeMs` says how old `VerifiedIndex.ageMs` may be, both in milliseconds. Throws at `completeness`, at
/// `witnesses` or `stale`, and where a checkpoint does not hold.
func verifyIndex(
    _ keys: LogKeys, _ index: IndexKeys, vrfHash: String, proof: JSONValue?, nowMs: Int, maxAgeMs: Int
) throws(CheckFailed) -> VerifiedIndex {
    let lookup = try during(.completeness) { () throws(LogError) in try readIndexLookup(proof) }
    let output = try openSignedCheckpoint(index.log, lookup.outputCheckpoint)
    let leaf = try provenLeaf(lookup, output)
    let input = try openSignedCheckpoint(keys, leaf.inputCheckpoint)
    try assertMapped(leaf, vrfHash, lookup, input)
    switch verifyWitnesses(index.log, output.note, nowMs: nowMs, maxAgeMs: maxAgeMs) {
    case .refused(let refusal): throw CheckFailed(refusal)
    case .holds(let witnessed):
        let ageMs = witnessed.atMs.map { max(0, nowMs - $0) }
        return VerifiedIndex(indexes: lookup.indexes, input: input, output: output, ageMs: ageMs)
    }
}

/// The newest leaf of the output log.
private func provenLeaf(_ lookup: IndexLookup, _ output: SignedCheckpoint) throws(CheckFailed) -> IndexLeaf {
    if output.treeSize == 0 { throw incomplete("the index has no leaf") }
    return try during(.completeness) { () throws(LogError) in
        let claim = InclusionClaim(
            leafHash: hashLeaf(lookup.leaf), index: output.treeSize - 1, treeSize: output.treeSize, path: lookup.path,
            rootHash: try decodeBase64(output.rootHash))
        try verifyInclusion(claim)
        return try parseIndexLeaf(lookup.leaf)
    }
}

private func assertMapped(
    _ leaf: IndexLeaf, _ vrfHash: String, _ lookup: IndexLookup, _ input: SignedCheckpoint
) throws(CheckFailed) {
    if let beyond = lookup.indexes.first(where: { $0 >= input.treeSize }) {
        throw incomplete("the index has leaf \(beyond) in a tree of size \(input.treeSize)")
    }
    let value = lookup.indexes.isEmpty ? nil : indexValueOf(lookup.indexes)
    let claim = PatriciaClaim(root: leaf.root, key: indexKeyOf(vrfHash), value: value, proof: lookup.proof)
    try during(.completeness) { () throws(LogError) in try verifyPatricia(claim) }
}

/// The members of an `indexProof`, taken apart. `path` runs from the newest leaf's sibling up.
private struct IndexLookup {
    let outputCheckpoint: String
    let leaf: [UInt8]
    let path: [[UInt8]]
    let indexes: [Int]
    let proof: [UInt8]
}

/// Throws `malformed` for another form.
private func readIndexLookup(_ proof: JSONValue?) throws(LogError) -> IndexLookup {
    guard let members = proof?.object else { throw .malformed("the proof of the index is no object") }
    return IndexLookup(
        outputCheckpoint: try decodeUTF8(octetsIn(members["output_log_cp"], octetsMax: noteOctetsMax)),
        leaf: try octetsIn(members["output_log_leaf"], octetsMax: indexLeafOctetsMax),
        path: try listIn(members["output_log_proof"], countMax: pathHashesMax).map(hashIn),
        indexes: try indexesIn(listIn(members["index_value"], countMax: indexesMax)),
        proof: try octetsIn(members["index_proof"], octetsMax: proofOctetsMax))
}

private func octetsIn(_ value: JSONValue?, octetsMax: Int) throws(LogError) -> [UInt8] {
    guard let text = value?.string else { throw .malformed("the proof of the index lacks a text") }
    if text.utf8.count > 4 * ((octetsMax + 2) / 3) { throw .malformed("a text in the proof of the index is too long") }
    return try decodeBase64(text)
}

private func listIn(_ value: JSONValue?, countMax: Int) throws(LogError) -> [JSONValue] {
    guard let list = value?.array else { throw .malformed("the proof of the index lacks a list") }
    if list.count > countMax { throw .malformed("a list in the proof of the index is too long") }
    return list
}

private func indexesIn(_ list: [JSONValue]) throws(LogError) -> [Int] {
    let indexes = try list.map { value throws(LogError) in try numberIn(value, max: safeMax) }
    guard zip(indexes, indexes.dropFirst()).allSatisfy(<) else {
        throw .malformed("the leaves that the index has for a hash do not ascend")
    }
    return indexes
}

private func hashIn(_ value: JSONValue) throws(LogError) -> [UInt8] {
    let numbers = try listIn(value, countMax: hashOctets)
    if numbers.count != hashOctets { throw .malformed("a hash in the proof of the index has not 32 octets") }
    return try numbers.map { number throws(LogError) in UInt8(try numberIn(number, max: 255)) }
}

/// As JavaScript reads it, which has one kind of number.
func numberIn(_ value: JSONValue, max: Int) throws(LogError) -> Int {
    guard case .number(let digits) = value, let number = Double(digits), number >= 0, number <= Double(max),
        number.rounded() == number
    else { throw .malformed("a number in the proof of the index is not one from 0 to \(max)") }
    return Int(number)
}

/// Whether an answer proves that its entry is the newest of its hash, and which further entries there are.
public enum Completeness: Sendable, Equatable {
    /// The best one first. The raw value is the name that `@callsign/sdk/client` gives it, but for its `true`.
    public enum Kind: String, Sendable, CaseIterable, Comparable {
        case complete = "true"
        case tailUnread = "tail-unread"
        case unindexed = "unindexed"

        private var rank: Int {
            switch self {
            case .complete: 0
            case .tailUnread: 1
            case .unindexed: 2
            }
        }

        public static func < (one: Kind, other: Kind) -> Bool { one.rank < other.rank }
    }

    /// The entries at `indexes`, ascending, are all under its hash up to its checkpoint. `indexAgeMs` is how many milliseconds
    /// ago the quorum had seen the index's newest leaf; nil without a quorum. `isProved`: cosigners that rebuild the index
    /// vouch for that; else auditors find out an index that lies.
    case complete(indexes: [Int], indexAgeMs: Int?, isProved: Bool)

    /// The log has grown too far since the index's newest leaf.
    case tailUnread

    /// No index was asked, or none was offered.
    case unindexed

    public var kind: Kind {
        switch self {
        case .complete: .complete
        case .tailUnread: .tailUnread
        case .unindexed: .unindexed
        }
    }

    /// Whether cosigners that rebuild the index vouch for it.
    var isProved: Bool {
        if case .complete(_, _, let isProved) = self { isProved } else { false }
    }
}

/// The least of what several answers prove; nothing where there is none.
func leastOf(_ proved: [Completeness]) -> Completeness.Kind { proved.map(\.kind).max() ?? .unindexed }

/// Whether cosigners that rebuild the index vouch for all of several answers.
func areProved(_ proved: [Completeness]) -> Bool { proved.allSatisfy(\.isProved) }

/// The entry that was shown for a hash, and the size of the tree that it was shown in.
struct ShownEntry: Sendable {
    let index: Int
    let treeSize: Int
}

/// Compares the shown entry with index and tail. `shown` is nil where the hash is said to have no entry. `tail` has the entries
/// under the hash from the input checkpoint to the answer's; nil: unread. An answer from before the index's newest leaf, which
/// has a newer entry, is unanswered at `stale`.
func judgeCompleteness(
    _ index: VerifiedIndex, isProved: Bool, tail: [Int]?, shown: ShownEntry?
) -> Outcome<Completeness> {
    let found = index.indexes + (tail ?? [])
    if let shown {
        // The shown entry is the only known one of an unread tail.
        let isInTail = tail == nil && shown.index >= index.input.treeSize
        let newest = isInTail ? shown.index : found.last { $0 < shown.treeSize }
        guard let newest, newest >= shown.index else { return refused("the index leaves out entry \(shown.index)") }
        if newest > shown.index {
            return refused("entry \(newest) is newer under this hash than entry \(shown.index)")
        }
        if let last = found.last, last >= shown.treeSize {
            let detail = "entry \(last) is newer than the answer's tree size \(shown.treeSize)"
            return .unanswered(Unanswered(detail, check: .stale))
        }
    } else if let other = found.last {
        return refused("entry \(other) is under a hash that is said to have none")
    }
    return .holds(tail == nil ? .tailUnread : .complete(indexes: found, indexAgeMs: index.ageMs, isProved: isProved))
}

private func refused(_ detail: String) -> Outcome<Completeness> { .refused(Refusal(.completeness, detail)) }

private func incomplete(_ detail: String) -> CheckFailed { CheckFailed(.completeness, detail) }

private let noteOctetsMax = 1_000_000
private let pathHashesMax = 63

/// So many keys under one hash, and a proof of their key with as many steps as there are bits.
private let indexesMax = 65_535
private let proofOctetsMax = 65_536
