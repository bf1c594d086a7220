import CallsignVerify
import Foundation

#if canImport(Glibc)
    import Glibc
#endif

/// A server of HTTP that gives every request one answer, or none.
public final class OddServer: Sendable {
    private struct State {
        var requests = 0
        var connections: [Int32] = []
        var isClosed = false
    }

    public let url: String
    private let listening: Int32
    private let state = Locked(State())
    private let firstAsked = Signal()

    public init(status: Int, text: String?, location: String? = nil) throws {
        listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listening = listening
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, length) == 0 && listen(listening, 50) == 0 && getsockname(listening, $0, &length) == 0
            }
        }
        guard isListening else { throw VectorError(name: "a port to listen on") }
        url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
        var head = ["HTTP/1.1 \(status) Odd", "content-length: \(text?.utf8.count ?? 0)", "connection: close"]
        if let location { head.append("location: \(location)") }
        let answer = text.map { Array("\(head.joined(separator: "\r\n"))\r\n\r\n\($0)".utf8) }
        let (state, firstAsked) = (state, firstAsked)
        Thread.detachNewThread {
            while true {
                let connection = accept(listening, nil, nil)
                if connection < 0 { return }
                state.with { $0.connections.append(connection) }
                Thread.detachNewThread {
                    Self.serve(connection, answer) {
                        state.with { $0.requests += 1 }
                        firstAsked.give()
                    }
                }
            }
        }
    }

    public var requests: Int { state.with { $0.requests } }

    /// Returns when the first request is here.
    public func asked() async { await firstAsked.given() }

    public func close() {
        shutdown(listening, Int32(SHUT_RDWR))
        _ = Glibc.close(listening)
        for connection in state.with({ $0.connections }) { shutdown(connection, Int32(SHUT_RDWR)) }
    }

    private static func serve(_ connection: Int32, _ answer: [UInt8]?, _ onRequest: () -> Void) {
        var octets = [UInt8](repeating: 0, count: 64 * 1024)
        if read(connection, &octets, octets.count) > 0 {
            onRequest()
            guard let answer else {
                while read(connection, &octets, octets.count) > 0 {}
                return
            }
            var at = 0
            while at < answer.count {
                let count = answer[at...].withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                if count <= 0 { break }
                at += count
            }
            shutdown(connection, Int32(SHUT_WR))
            while read(connection, &octets, octets.count) > 0 {}
        }
    }
}
