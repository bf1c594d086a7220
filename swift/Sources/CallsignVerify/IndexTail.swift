// The tail of an answer: what the log has appended between the checkpoint of the index's newest leaf and the answer's. The
// entries are read from the log's bundles and count once they lead from the one signed root to the other.

/// Gives the entries of a bundle, as many as asked for. Throws `NoAnswer`.
typealias FetchEntries = @Sendable (EntryBundle) async throws -> [[UInt8]]

/// Where tiles and entries of one log are read from.
struct TailSource: Sendable {
    let tiles: FetchTile
    let entries: FetchEntries
}

/// The leaves of a tail by the VRF hash of their entries, base64.
struct IndexTail: Sendable {
    /// By octets: Swift takes two spellings of a text for one.
    private let indexes: [[UInt8]: [Int]]

    init(indexes: [[UInt8]: [Int]]) { self.indexes = indexes }

    /// Ascending.
    func under(_ vrfHash: String) -> [Int] { indexes[Array(vrfHash.utf8)] ?? [] }
}

/// Asks `sources` in turn until one gives the entries. The last tails that were read are kept, since many lookups share one.
final class IndexTails: Sendable {
    private struct ReadTail: Sendable {
        let older: SignedCheckpoint
        let newer: SignedCheckpoint
        let tail: IndexTail

        func isBetween(_ one: SignedCheckpoint, _ other: SignedCheckpoint) -> Bool {
            older.treeSize == one.treeSize && isSame(older.rootHash, one.rootHash) && newer.treeSize == other.treeSize
                && isSame(newer.rootHash, other.rootHash)
        }
    }

    /// Some 600 kB, of keys as apps have them: an index that is further behind does not do its work.
    static let entriesMax = 4_096

    private let sources: [TailSource]
    private let turn = Turn()
    private let kept = Remembered<ReadTail>()

    init(_ sources: [TailSource]) { self.sources = sources }

    /// The entries of `newer` that `older` does not have: at least one, at most `entriesMax`. Unanswered at `tiles` where no
    /// source has them.
    func read(older: SignedCheckpoint, newer: SignedCheckpoint) async throws -> Outcome<IndexTail> {
        try await turn.one {
            if let known = kept.find({ $0.isBetween(older, newer) }) { return .holds(known.tail) }
            var detail: String?
            for source in sources {
                do {
                    if let tail = try await tailFrom(source, older, newer) {
                        kept.keep(ReadTail(older: older, newer: newer, tail: tail))
                        return .holds(tail)
                    }
                    detail = detail ?? "they do not lead from tree size \(older.treeSize) to \(newer.treeSize)"
                } catch let error as NoAnswer {
                    detail = detail ?? error.message
                }
            }
            return .unanswered(Unanswered(detail ?? "", check: .tiles))
        }
    }
}

/// Nil where tiles and entries do not lead from the one root to the other.
private func tailFrom(_ source: TailSource, _ older: SignedCheckpoint, _ newer: SignedCheckpoint) async throws -> IndexTail? {
    let edgeNodes = try rootNodes(older.treeSize)
    async let fetchedTiles = fetchTiles(source.tiles, edgeNodes, newer.treeSize)
    async let fetchedEntries = fetchEntries(source.entries, from: older.treeSize, to: newer.treeSize)
    let (tiles, entries) = try await (fetchedTiles, fetchedEntries)
    var edge = RightEdge(treeSize: older.treeSize, roots: try hashReader(tiles, newer.treeSize)(edgeNodes))
    guard try leads(edge, to: older) else { return nil }
    for entry in entries { try edge.append(hashLeaf(entry)) }
    guard try leads(edge, to: newer) else { return nil }
    var indexes: [[UInt8]: [Int]] = [:]
    for (at, entry) in entries.enumerated() {
        // The text that an entry begins with, and that an index has it under, whatever the log lets follow.
        indexes[Array(entry.prefix(vrfHashCharacters)), default: []].append(older.treeSize + at)
    }
    return IndexTail(indexes: indexes)
}

/// The entries from `start` up to, not including, `treeSize`.
private func fetchEntries(_ fetch: @escaping FetchEntries, from start: Int, to treeSize: Int) async throws -> [[UInt8]] {
    let first = start / tileWidth
    let bundles = (first...(treeSize - 1) / tileWidth).map {
        EntryBundle(index: $0, width: widthOfTile(level: 0, index: $0, treeSize: treeSize))
    }
    let fetched = try await withThrowingTaskGroup(of: (Int, [[UInt8]]).self) { group in
        for bundle in bundles {
            group.addTask { (bundle.index, try await fetch(bundle)) }
        }
        return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    return Array(bundles.flatMap { fetched[$0.index] ?? [] }.dropFirst(start - first * tileWidth))
}

private func leads(_ edge: RightEdge, to checkpoint: SignedCheckpoint) throws(LogError) -> Bool {
    isSame(encodeBase64(try edge.rootHash()), checkpoint.rootHash)
}

/// 64 octets in base64.
private let vrfHashCharacters = 88
