import CallsignApp

#if canImport(Darwin)
    func sockets() -> any SocketTransport { platformSockets() }
#else
    import Foundation
    import TestSupport

    /// Where the server speaks STOMP over TCP, such as `127.0.0.1:41337`.
    func sockets() -> any SocketTransport {
        TCPStompTransport(ProcessInfo.processInfo.environment["CALLSIGN_STOMP_TCP"] ?? "")
    }
#endif
