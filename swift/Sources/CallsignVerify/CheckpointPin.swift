// The highest checkpoint a client has seen. Holding each new one against it is what makes a rewritten history or a second view of
// the log show.
//
// Caches stand between log and client, so only two signed notes that contradict each other accuse the log:
//
// - one size with two roots, or tiles that lead to the newer root and contradict the older one: evidence
// - tiles that are missing or lead to no signed root prove nothing. The checkpoint is kept as *pending* and compared with every
//   later one: once the log has grown past it, the tiles of its own tree decide
// - an answer with a beginning of the highest tree is *stale*
//
// Nothing of a pending or stale answer is used. Where that lasts longer than `maxAgeMs`, it is refused.

/// A log's stored state.
public struct KeptCheckpoint: Sendable, Equatable {
    public var checkpoint: SignedCheckpoint

    /// Notes that the log signed and that could not be compared yet.
    public var pending: [String]

    /// Set while there are any, or the log's answers are stale: the time of the first, POSIX milliseconds.
    public var openSinceMs: Int?

    public init(checkpoint: SignedCheckpoint, pending: [String] = [], openSinceMs: Int? = nil) {
        self.checkpoint = checkpoint
        self.pending = pending
        self.openSinceMs = openSinceMs
    }
}

/// Where an app keeps the highest checkpoint of each log: in what survives a restart, and per installation. `put` returns once it
/// would survive one; `FileCheckpointStore` does.
public protocol CheckpointStore: Sendable {
    func get(_ origin: String) async throws -> KeptCheckpoint?

    func put(_ kept: KeptCheckpoint) async throws
}

/// A store that forgets with the process: until then rollbacks and forks show, after it they do not.
public final class MemoryCheckpointStore: CheckpointStore {
    /// By octets: Swift takes two spellings of a text for one.
    private let kept = Locked<[[UInt8]: KeptCheckpoint]>([:])

    public init() {}

    public func get(_ origin: String) async -> KeptCheckpoint? { kept.with { $0[Array(origin.utf8)] } }

    public func put(_ kept: KeptCheckpoint) async { self.kept.with { $0[Array(kept.checkpoint.origin.utf8)] = kept } }
}

/// What became of a checkpoint at the pin.
enum Acceptance: Sendable {
    case accepted
    case refused(Refusal)
    case open(Unanswered)

    /// The value, where the checkpoint it rests on is accepted.
    func outcome<Value>(_ value: Value) -> Outcome<Value> {
        switch self {
        case .accepted: .holds(value)
        case .refused(let refusal): .refused(refusal)
        case .open(let unanswered): .unanswered(unanswered)
        }
    }
}

/// One log's pin. Checkpoints are taken one after the other, however many arrive at once.
final class CheckpointPin: Sendable {
    private let keys: LogKeys
    private let store: any CheckpointStore
    private let sources: [FetchTile]
    private let openMsMax: Int
    private let mayBegin: Bool
    private let turn = Turn()

    /// The one that was last found good.
    private let verified = Locked<SignedCheckpoint?>(nil)

    /// The two notes that were last found consistent: each result of an answer carries the same ones.
    private let consistent = Locked<Evidence?>(nil)

    /// It asks `sources` in turn until the tiles of one decide. `mayBegin`: the log may be begun anew with another key under its
    /// name, so a kept checkpoint that none of the present keys has signed counts as none.
    init(_ keys: LogKeys, _ store: any CheckpointStore, _ sources: [FetchTile], maxAgeMs: Int?, mayBegin: Bool = false) {
        self.keys = keys
        self.store = store
        self.sources = sources
        openMsMax = maxAgeMs ?? openMsMaxUnlessGiven
        self.mayBegin = mayBegin
    }

    /// The highest checkpoint. Throws `malformed` when the store gives back something else than was put in, such as a checkpoint
    /// that the log did not sign.
    func highest() async throws -> SignedCheckpoint? { try await read()?.checkpoint }

    /// Whether a checkpoint is kept, be it one that counts as none. Throws as `highest`.
    func hasSeen() async throws -> Bool {
        if try await read() != nil { return true }
        return try await store.get(keys.origin) != nil
    }

    /// Takes a checkpoint that the log signed once it fits the highest one, and keeps it when it is larger. `floorSize` is given
    /// for an answer of the log: the highest size when the request left. A later answer may overtake it, but a tree below the
    /// floor is stale. Throws whatever the store throws.
    func accept(_ seen: SignedCheckpoint, nowMs: Int, floorSize: Int? = nil) async throws -> Acceptance {
        try await turn.one {
            guard let pin = try await read() else {
                try await store.put(KeptCheckpoint(checkpoint: seen))
                return .accepted
            }
            return try await accept(seen, pin, nowMs: nowMs, floorSize: floorSize)
        }
    }

    private func accept(
        _ seen: SignedCheckpoint,
        _ pin: KeptCheckpoint,
        nowMs: Int,
        floorSize: Int?
    ) async throws -> Acceptance {
        let highest = pin.checkpoint
        var withSeen = pin
        if !pin.pending.contains(where: { isSame($0, seen.note) }) { withSeen.pending.append(seen.note) }
        switch try await compareOrKeep(highest, seen, withSeen, nowMs: nowMs) {
        case .accepted: break
        case .refused(let refusal): return .refused(refusal)
        case .open(let unanswered): return try await leaveOpen(withSeen, unanswered, nowMs: nowMs)
        }
        if let floorSize, seen.treeSize < floorSize { return try await leaveOpen(pin, stale(highest, seen), nowMs: nowMs) }
        var next = pin
        next.checkpoint = seen.treeSize > highest.treeSize ? seen : highest
        let asked = try await askAgain(pin.pending, next.checkpoint)
        if let refusal = asked.refused { return .refused(refusal) }
        next.pending = asked.left
        if let open = asked.open {
            if case .refused(let refusal) = try await leaveOpen(next, open, nowMs: nowMs) { return .refused(refusal) }
            return .accepted
        }
        // Another person's note says nothing of how late the log's answers are.
        if floorSize != nil { next.openSinceMs = nil }
        if next != pin { try await keep(next) }
        return .accepted
    }

    /// Where the comparison is cancelled, the note is pending: an app that closes must not lose what accuses the log.
    private func compareOrKeep(
        _ highest: SignedCheckpoint,
        _ seen: SignedCheckpoint,
        _ withSeen: KeptCheckpoint,
        nowMs: Int
    ) async throws -> Acceptance {
        do {
            return try await compare(highest, seen)
        } catch {
            guard Task.isCancelled || error is CancellationError else { throw error }
            var kept = withSeen
            kept.openSinceMs = sinceOf(withSeen, nowMs)
            // A task of its own is not cancelled with this one.
            try await Task { [kept] in try await keep(kept) }.value
            throw error
        }
    }

    /// Keeps since when something is open: the answer, until that has lasted too long.
    private func leaveOpen(_ pin: KeptCheckpoint, _ open: Unanswered, nowMs: Int) async throws -> Acceptance {
        let openSinceMs = sinceOf(pin, nowMs)
        var kept = pin
        kept.openSinceMs = openSinceMs
        if open.check == .tiles || openSinceMs != pin.openSinceMs { try await keep(kept) }
        let openMs = nowMs &- openSinceMs
        if openMs <= openMsMax { return .open(open) }
        let detail = "\(open.detail), and no better answer has come for \(openMs / 1_000) s"
        return .refused(Refusal(open.check ?? .tiles, detail))
    }

    /// A clock that was ahead must not put the refusal off.
    private func sinceOf(_ pin: KeptCheckpoint, _ nowMs: Int) -> Int { min(pin.openSinceMs ?? nowMs, nowMs) }

    /// `open` says why the last of those that are `left` is.
    private struct Asked {
        var left: [String] = []
        var refused: Refusal?
        var open: Unanswered?
    }

    /// Compares pending checkpoints with the newest one. Those that still could not be are left.
    private func askAgain(_ pending: [String], _ newest: SignedCheckpoint) async throws -> Asked {
        var asked = Asked()
        for note in pending {
            // A note that the log did not sign is no evidence.
            guard case .holds(let verified) = verifyCheckpoint(keys, note) else { continue }
            switch try await compare(newest, verified.checkpoint) {
            case .accepted: continue
            case .refused(let refusal): return Asked(left: pending, refused: refusal)
            case .open(let unanswered): asked.open = unanswered
            }
            asked.left.append(note)
        }
        return asked
    }

    /// Whether one of two trees begins with the other. Only tiles that lead to the signed root prove that it does not.
    private func compare(_ known: SignedCheckpoint, _ seen: SignedCheckpoint) async throws -> Acceptance {
        let comparison: SizeComparison
        switch compareCheckpoints(known: known, seen: seen) {
        case .holds(let found): comparison = found
        case .refused(let refusal): return .refused(refusal)
        }
        let isKnown = consistent.with { $0.map { isSame($0.known, known.note) && isSame($0.seen, seen.note) } ?? false }
        if comparison == .same || isKnown { return .accepted }
        let (older, newer) = comparison == .larger ? (known, seen) : (seen, known)
        var unanswered: String?
        for source in sources {
            let found: TileConsistency
            do {
                found = try await consistencyFromTiles(source, older: older, newer: newer)
            } catch let error as NoAnswer {
                found = .inconsistent(check: .tiles, detail: error.message)
            }
            switch found {
            case .consistent:
                consistent.with { $0 = Evidence(known: known.note, seen: seen.note) }
                return .accepted
            case .inconsistent(.consistency, let detail):
                let evidence = Evidence(known: older.note, seen: newer.note)
                return .refused(Refusal(.consistency, detail, evidence: evidence))
            case .inconsistent(_, let detail):
                unanswered = unanswered ?? detail
            }
        }
        return .open(Unanswered(unanswered ?? "", check: .tiles))
    }

    private func read() async throws -> KeptCheckpoint? {
        guard let kept = try await store.get(keys.origin) else { return nil }
        if try mayBegin && isOfOtherKeys(kept.checkpoint) { return nil }
        if verified.with({ $0 }) != kept.checkpoint {
            let checkpoint = try verify(kept.checkpoint)
            verified.with { $0 = checkpoint }
        }
        return kept
    }

    /// A signature that names one of the present keys has to hold.
    private func isOfOtherKeys(_ kept: SignedCheckpoint) throws -> Bool {
        if let note = verified.with({ $0?.note }), isSame(note, kept.note) { return false }
        return try !readNote(kept.note).signatures.contains { line in
            keys.verifiers.contains { isSame($0.name, line.name) && $0.keyId == line.keyId }
        }
    }

    /// Anyone who can write to the app's storage could plant a checkpoint: only the signature counts.
    private func verify(_ kept: SignedCheckpoint) throws -> SignedCheckpoint {
        switch verifyCheckpoint(keys, kept.note) {
        case .holds(let found) where found.checkpoint == kept: return kept
        case .holds: throw LogError.malformed("the checkpoint in the store is not what its note says")
        case .refused(let refusal):
            throw LogError.malformed("the checkpoint in the store is not the log's: \(refusal.detail)")
        }
    }

    private func keep(_ pin: KeptCheckpoint) async throws {
        var kept = pin
        kept.pending = Array(pin.pending.prefix(pendingMax))
        try await store.put(kept)
    }

    private func stale(_ highest: SignedCheckpoint, _ seen: SignedCheckpoint) -> Unanswered {
        let detail = "tree size \(seen.treeSize) is the beginning of \(highest.treeSize), which was seen before"
        return Unanswered(detail, check: .stale)
    }
}

/// Only the log can sign one. When it signs more, the first are kept: later ones can't push a contradiction out.
private let pendingMax = 16
private let openMsMaxUnlessGiven = 24 * 3_600_000
