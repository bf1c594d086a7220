import CallsignVerify

/// Acts that the shell carries out for the connection of a device, in this order.
enum ConnectionAct: Sendable {
    /// Answers by `done` or `failed` with this number.
    case asking(act: Int, ConnectionQuestion)
    case endSession(ConnectionFailure)

    /// The server has named its time.
    case hearTime(serverMs: Int)

    /// Connects: `connected` or `closed` follow, about the socket with this number.
    case open(socket: Int, token: String)

    /// Sends a frame that needs no answer.
    case tell(socket: Int, command: String, headers: [StompHeader])

    /// Ends the socket at once: `closed` follows.
    case abandon(socket: Int)

    /// Gives an event to a watch.
    case topic(watch: String, event: JSONValue)

    /// Answers the app.
    case settle(command: Int, watch: String? = nil, error: ConnectionFailure? = nil)
    case state(ConnectionState, failures: Int)

    /// All subscriptions are there.
    case ready(mayHaveMissed: Bool)
    case trouble(ConnectionFailure)
}

enum ConnectionQuestion: Sendable {
    /// A token that is good for a while. Its outcome has it.
    case token

    /// Gets another token in the place of this one.
    case renew(token: String)

    /// Registers the device of this session.
    case register

    /// Sends a frame that asks for a RECEIPT, whose `recovered` the outcome has.
    case request(socket: Int, command: String, headers: [StompHeader], body: String = "")

    /// Ends the socket when the server has carried out all that was sent. Its outcome comes at the end.
    case disconnect(socket: Int)

    /// Has the app handle an event: its outcome comes then.
    case handle(event: [String: JSONValue])
}
