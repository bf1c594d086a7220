// Data of a device's connection, all of it immutable, so that each language runs the same stories.
import CallsignVerify

struct DeviceConnection: Sendable, Equatable {
    var phase = ConnectionPhase.off

    /// Attempts that failed in a row, those after a short connection too.
    var failures = 0

    /// As the server knows it; nil before the first connection.
    var deviceId: String?
    var queues = ["account", "contacts", "calls"].map { ConnectionQueue(name: $0) }
    var watches: [ConnectionWatch] = []

    /// Ids of events, the oldest first.
    var seen: [String] = []

    /// By the pace of acknowledgements, when there were as many as were sent.
    var acksUntilMs = -ConnectionQueues.acksAtOnce * ConnectionQueues.ackEveryMs

    /// Acts whose outcome is still to come, also after the phase that they began in.
    var waiting: [ConnectionWaiting] = []

    /// Counts acts and sockets.
    var count = 0
}

enum ConnectionPhase: Sendable, Equatable {
    case off
    case elsewhere
    case token(act: Int)
    case opening(OpenedSocket)

    /// `left`: acts of the subscriptions without an answer so far. `recovered`: whether each queue goes on behind `since`, as its
    /// RECEIPT says: `true`, `false`, or nothing.
    case subscribing(ConfirmedSocket, left: [Int], recovered: [String?] = [])
    case connected(ConfirmedSocket)

    /// The next attempt waits for a new token.
    case renewing(act: Int, retryAfterMs: Int)

    /// The next attempt waits for the device to be registered.
    case registering(act: Int, retryAfterMs: Int)
    case pausing(untilMs: Int)

    /// The one that an app sees.
    var state: ConnectionState {
        switch self {
        case .off: .off
        case .elsewhere: .elsewhere
        case .subscribing, .connected: .connected
        case .token, .opening, .renewing, .registering, .pausing: .connecting
        }
    }

    /// The connection that the server has confirmed.
    var confirmed: ConfirmedSocket? {
        switch self {
        case .subscribing(let confirmed, _, _), .connected(let confirmed): confirmed
        default: nil
        }
    }

    /// The socket that there is.
    var opened: OpenedSocket? {
        if case .opening(let opened) = self { opened } else { confirmed?.opened }
    }

    /// Whether nothing is to become a connection.
    var isIdle: Bool { self == .off || self == .elsewhere }
}

struct OpenedSocket: Sendable, Equatable {
    let socket: Int
    let token: String
}

struct ConfirmedSocket: Sendable, Equatable {
    let opened: OpenedSocket
    let connectedAtMs: Int
}

/// `since`: the last message whose acknowledgement the server has on disk.
struct ConnectionQueue: Sendable, Equatable {
    let name: String
    var waiting: [ConnectionMessage] = []
    var since: String?
}

/// `messageId`: the header `ack`.
struct ConnectionMessage: Sendable, Equatable {
    let event: [String: JSONValue]
    let eventId: String
    let messageId: String
    let socket: Int
}

/// `command`: the app's, until it is settled. `socket`: the one that it is subscribed on.
struct ConnectionWatch: Sendable, Equatable {
    let id: String
    let destination: String
    var command: Int?
    var socket: Int?
}

/// An act whose outcome comes as an input with the same number, and what it is for.
struct ConnectionWaiting: Sendable, Equatable {
    let act: Int
    let purpose: ConnectionPurpose
}

enum ConnectionPurpose: Sendable, Equatable {
    case queue(socket: Int)
    case watch(socket: Int, id: String)
    case handle(queue: String, message: ConnectionMessage)
    case ack(queue: String, messageId: String, socket: Int)
    case send(command: Int)
    case disconnect(command: Int)
}

/// An error as data; `cause` is the one that it was made from, and counts for nothing when two are compared.
struct ConnectionFailure: Sendable, Equatable {
    let code: String
    var message: String?
    var cause: (any Error)?

    static let offline = ConnectionFailure(
        code: CallsignError.LocalCode.offline,
        message: "There is no connection to the server now."
    )

    static func == (one: ConnectionFailure, other: ConnectionFailure) -> Bool {
        one.code == other.code && one.message == other.message
    }
}
