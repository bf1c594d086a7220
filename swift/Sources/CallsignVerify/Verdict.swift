// What checking the log comes to. A check that fails is an expected answer, so verifiers return it and name the check; they throw
// only for what the app itself did wrong.

/// A check, by the name that `@callsign/sdk/client` gives it too.
public enum Check: String, Sendable {
    /// An answer or its proof text is not of its form.
    case proof

    /// The note in it is not of its form.
    case checkpoint

    /// The note is of another log.
    case origin

    /// The note is not signed by the log.
    case signature

    /// The witnesses of the app's policy have not cosigned the checkpoint.
    case witnesses

    /// They have, longer ago than the app allows; or the tree is only the beginning of one seen before.
    case stale

    /// The proof is of a leaf beyond the tree.
    case index

    /// The VRF proof does not hold for this user and device.
    case vrf

    /// The hash it proves is not the one that the answer states or the app asked for.
    case vrfHash

    /// The entry is not in the tree that was signed.
    case inclusion

    /// The entry is in the log and holds another key than the app holds.
    case publicKey

    /// One size was signed with two roots.
    case fork

    /// No source serves the tiles that would show whether a signed tree fits one seen before.
    case tiles

    /// One of two signed trees does not begin with the other: history was rewritten.
    case consistency

    /// A key history leaves something out or is not one.
    case history

    /// A user's device list, or a device named beside it, does not hold.
    case deviceList

    /// The log's index does not prove that the answer is the newest entry of its hash, or that there is none.
    case completeness

    /// Another key was logged under the hash of a device: someone can have put it there to listen in.
    case otherKey
}

/// Two signed notes that contradict each other, the one known before first.
public struct Evidence: Sendable, Equatable {
    public let known: String
    public let seen: String

    package init(known: String, seen: String) {
        self.known = known
        self.seen = seen
    }
}

/// Something the log said does not hold: use nothing of that answer. `detail` is a sentence for the app's own log, no text for
/// users. `evidence` is worth keeping and showing.
public struct Refusal: Sendable, Equatable {
    public let check: Check
    public let detail: String
    public var evidence: Evidence?

    package init(_ check: Check, _ detail: String, evidence: Evidence? = nil) {
        self.check = check
        self.detail = detail
        self.evidence = evidence
    }
}

/// Nothing could be checked: no network, a server that refused, or a cache that is late. `code` comes from the server's problem
/// document. With `check` the checkpoint could not be compared (`tiles`), or is older than one seen before (`stale`), which is no
/// sign of a lie yet.
public struct Unanswered: Sendable, Equatable {
    public let detail: String
    public var status: Int?
    public var code: String?
    public var check: Check?

    package init(_ detail: String, status: Int? = nil, code: String? = nil, check: Check? = nil) {
        self.detail = detail
        self.status = status
        self.code = code
        self.check = check
    }
}

/// What a check of something that is here comes to.
public enum Verdict<Value: Sendable>: Sendable {
    case holds(Value)
    case refused(Refusal)
}

/// What a question to the log comes to.
public enum Outcome<Value: Sendable>: Sendable {
    case holds(Value)
    case refused(Refusal)
    case unanswered(Unanswered)
}

extension Verdict: Equatable where Value: Equatable {}
extension Outcome: Equatable where Value: Equatable {}

/// A check that did not hold, on its way to the verifier that returns its refusal.
struct CheckFailed: Error {
    let refusal: Refusal

    init(_ check: Check, _ detail: String, evidence: Evidence? = nil) {
        refusal = Refusal(check, detail, evidence: evidence)
    }

    init(_ refusal: Refusal) { self.refusal = refusal }
}

/// Runs one check: a `LogError` means that it failed.
func during<Value>(_ check: Check, _ act: () throws(LogError) -> Value) throws(CheckFailed) -> Value {
    do {
        return try act()
    } catch {
        throw CheckFailed(check, error.message)
    }
}
