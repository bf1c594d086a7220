import CallsignApp
import CallsignVerify

/// The way to the server, as long as the network is there: requests and sockets.
public final class BreakableNetwork: HTTPTransport, SocketTransport {
    public struct NetworkDown: Error {
        public init() {}
    }

    private struct State {
        var isCut = false
        var sockets: [any Socket] = []
    }

    private let http: any HTTPTransport
    private let sockets: any SocketTransport
    private let state = Locked(State())

    public init(_ http: any HTTPTransport, _ sockets: any SocketTransport) {
        self.http = http
        self.sockets = sockets
    }

    public convenience init(_ server: DevelopmentServer) {
        self.init(platformHTTP(), TCPStompTransport(server.stompTcp))
    }

    /// Breaks all connections, and each new one.
    public func cut() {
        let broken = state.with { state in
            state.isCut = true
            defer { state.sockets = [] }
            return state.sockets
        }
        for socket in broken { socket.cancel() }
    }

    public func restore() { state.with { $0.isCut = false } }

    public func send(_ request: HTTPRequest) async throws -> HTTPAnswer {
        if state.with({ $0.isCut }) { throw NetworkDown() }
        let answer = try await http.send(request)
        if state.with({ $0.isCut }) { throw NetworkDown() }
        return answer
    }

    public func open(_ request: SocketRequest) throws -> any Socket {
        let socket = try sockets.open(request)
        let isCut = state.with { state in
            if !state.isCut { state.sockets.append(socket) }
            return state.isCut
        }
        if isCut { socket.cancel() }
        return socket
    }
}
