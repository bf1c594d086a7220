import CallsignVerify

/// Inputs to the connection of a device, by their origin.
enum ConnectionInput: Sendable {
    /// The app. A `settle` answers each command once.
    case connect
    case disconnect(command: Int)
    case watch(command: Int, destination: String)
    case unwatch(watch: String)
    case send(command: Int, destination: String, body: String)

    /// The platform says that there is a network.
    case online

    /// The session has ended.
    case over

    /// CONNECTED. `serverMs`: the server's time; 0 where it names none.
    case connected(socket: Int, device: String?, serverMs: Int)

    /// A MESSAGE, with the JSON of its body.
    case message(Message)

    /// How a socket has ended.
    case closed(Close)

    /// The outcome of the act with this number.
    case done(act: Int, token: String? = nil, recovered: String? = nil)
    case failed(act: Int, failure: ConnectionFailure)

    /// The time of `nextDeadlineMs` has come.
    case time

    struct Message: Sendable {
        let socket: Int
        let subscription: String
        let ack: String?
        let event: JSONValue
    }

    /// Codes and reasons are those of docs/protocol/socket.md ("Connect").
    struct Close: Sendable {
        let socket: Int
        let code: Int
        let reason: String
        let retryAfterMs: Int
        var failure: ConnectionFailure?
    }
}
