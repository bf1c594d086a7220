// Where a device is in a call: its phase, the planned keys, and the end.
import CallsignVerify

enum CallPhase: Sendable, Equatable {
    case ringingIn(Rings)
    case ringingOut
    case entering(Entering)
    case active

    /// This device has no key, and asks those who are in the call.
    case rejoining(Ask)

    /// It asks on, after nobody had the key.
    case keyless(Ask)
    case ended(CallEnding)

    /// Of a call that rings here.
    var rings: Rings? {
        if case .ringingIn(let rings) = self { rings } else { nil }
    }

    var entering: Entering? {
        if case .entering(let entering) = self { entering } else { nil }
    }

    /// While this device has no key.
    var ask: Ask? {
        switch self {
        case .rejoining(let ask), .keyless(let ask): ask
        case .ringingIn, .ringingOut, .entering, .active, .ended: nil
        }
    }

    /// One that asks, with another ask; any other as it is.
    func asking(_ ask: Ask) -> CallPhase {
        switch self {
        case .rejoining: .rejoining(ask)
        case .keyless: .keyless(ask)
        case .ringingIn, .ringingOut, .entering, .active, .ended: self
        }
    }

    var isKeyless: Bool {
        if case .keyless = self { true } else { false }
    }

    var isEnded: Bool {
        if case .ended = self { true } else { false }
    }
}

struct Entering: Sendable, Equatable {
    /// Where it goes back to when it fails: it rings, or is gone.
    var from: Rings?
    var step: EnteringStep
    var commands: [Int]

    /// Why it would have rung no more while it was answered here.
    var rungOut: CallEnding?

    /// The start that this call has crossed: it is made after all if this call has ended by now.
    var crossed: Crossed?

    /// The user wants it, however old its invitation is.
    var evenIfOld = false
}

/// The key is opened; other calls are left; the server is asked; the key that came with its answer is opened.
enum EnteringStep: String, Sendable {
    case key
    case clearing
    case joining
    case opening
}

struct Crossed: Sendable, Equatable {
    let command: Int
    let callId: String
    let userIds: [UInt64]
    let options: StartOptions
}

struct Rings: Sendable, Equatable {
    var invited: Invited
    var untilMs: Int

    /// The answer to `join` was lost: the server may have this device in the call.
    var mayBeIn = false
}

/// A sealed key of an invitation: its text alone is none, since a server may name it for several epochs.
struct InvitedKey: Sendable, Equatable {
    let epoch: Int
    let text: String

    /// Texts of a stranger are compared by their octets.
    static func == (one: InvitedKey, other: InvitedKey) -> Bool { one.epoch == other.epoch && isSame(one.text, other.text) }
}

/// A key that came with an invitation, or for it.
struct Invited: Sendable, Equatable {
    let epoch: Int
    let text: String

    /// The sender, if named; else the call's record names those in the call.
    var from: Sender?

    /// The one before, which it has to come from a device of.
    var after: HeldKey?

    /// How its set differs from that one's.
    var change: SetChange?
    var state = InvitedState.opening

    /// Once it is opened.
    var key: HeldKey?

    var named: InvitedKey { InvitedKey(epoch: epoch, text: text) }
}

enum InvitedState: Sendable {
    case opening
    case opened
    case refused
}

/// While this device has no key.
enum Ask: Sendable, Equatable {
    /// The request is under way.
    case asking

    /// Those in the call were asked.
    case asked(untilMs: Int)

    /// It asks again then.
    case pausing(untilMs: Int)

    /// It returns with a key: another one as the host, or one that it was given.
    case returning
}

enum Rotation: Sendable, Equatable {
    case idle
    case planned(Planned)
    case renewing(Renewing)

    struct Planned: Sendable, Equatable {
        var atMs: Int
        var afterMs: Int
        var reason: KeysReason
    }

    struct Renewing: Sendable, Equatable {
        var reason: KeysReason

        /// The time after which it was planned; nil if the app asked for it.
        var afterMs: Int?
        var commands: [Int]

        /// It comes back into the call with this key.
        var returning: CallRecord?

        /// Planned meanwhile.
        var next: Planning?
    }

    var planned: Planned? {
        if case .planned(let planned) = self { planned } else { nil }
    }

    var renewing: Renewing? {
        if case .renewing(let renewing) = self { renewing } else { nil }
    }
}

struct Planning: Sendable, Equatable {
    let afterMs: Int
    let reason: KeysReason
}

enum KeysReason: String, Sendable {
    case rotation
    case leave
    case emergency
    case invite
}

/// Whether the call has ended at the server, and the reason may come yet.
enum EndState: Sendable, Equatable {
    /// It has not.
    case open
    case reason(atMs: Int, connection: Int?)

    /// The connection was another one, or none: the reason comes with the next one.
    case reconnection(atMs: Int)
}

/// The state that an app sees.
func stateOf(_ phase: CallPhase) -> CallState {
    switch phase {
    case .ringingIn, .ringingOut: .ringing
    case .entering: .joining
    case .active: .active
    case .rejoining: .rejoining
    case .keyless: .keyless
    case .ended: .ended
    }
}
