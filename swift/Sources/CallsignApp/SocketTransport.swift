/// A socket to open: each of its messages is a text. `url` is as of HTTP, such as `https://call.example.org/ws`.
public struct SocketRequest: Sendable {
    public var url: String
    public var subprotocol: String

    /// A longer message ends the socket.
    public var messageOctetsMax: Int

    /// As of `HTTPRequest`.
    public var tlsPins: TLSPins

    public init(url: String, subprotocol: String, messageOctetsMax: Int, tlsPins: TLSPins = .none) {
        self.url = url
        self.subprotocol = subprotocol
        self.messageOctetsMax = messageOctetsMax
        self.tlsPins = tlsPins
    }
}

public enum SocketEvent: Sendable, Equatable {
    case open
    case text(String)

    /// The last one. `code` is the one of the close (RFC 6455); 1006 where the network broke.
    case closed(code: Int, reason: String)
}

/// One WebSocket, or what stands for it.
public protocol Socket: Sendable {
    /// What happens, in order. Read once, by one task; while it is not read, nothing more than a few messages is taken in.
    var incoming: AsyncStream<SocketEvent> { get }

    /// Texts leave in the order of these calls; one on a socket that has ended is lost.
    func send(_ text: String)

    /// Ends the socket at once.
    func cancel()
}

public protocol SocketTransport: Sendable {
    /// Returns at once; `open` or `closed` follows. Throws where there can be no such socket.
    func open(_ request: SocketRequest) throws -> any Socket
}

/// The system's own WebSockets. Foundation has none on Linux.
public func platformSockets() -> any SocketTransport {
    #if canImport(Security)
        URLSessionSockets()
    #else
        NoSockets()
    #endif
}

#if !canImport(Security)
    private struct NoSockets: SocketTransport {
        func open(_ request: SocketRequest) throws -> any Socket {
            throw CallsignError("SOCKETS_UNAVAILABLE", "This system has no WebSockets: give the server a SocketTransport.")
        }
    }
#endif
