typealias FetchEntries = @Sendable (EntryBundle) async throws -> [[UInt8]]
struct TailSource: Sendable { let tiles: FetchTile; let entries: FetchEntries }
struct IndexTail: Sendable { let indexes: [String: [Int]]; func under(_ vrfHash: String) -> [Int] { [] } }
final class IndexTails: Sendable {
    static let entriesMax = 4096
    init(_ sources: [TailSource]) {}
    func read(older: SignedCheckpoint, newer: SignedCheckpoint) async throws -> Outcome<IndexTail> { .unanswered(Unanswered("x")) }
}
