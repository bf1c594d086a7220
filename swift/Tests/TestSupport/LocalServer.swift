import CallsignVerify
import Foundation

#if canImport(Darwin)
    import Darwin
    private let streamSocket = SOCK_STREAM
    private let noSignal: Int32 = 0
#else
    import Glibc
    private let streamSocket = Int32(SOCK_STREAM.rawValue)
    private let noSignal = Int32(MSG_NOSIGNAL)
#endif

/// A request that a `LocalServer` was sent. Names of headers are in lower case.
public struct ReceivedRequest: Sendable {
    public let method: String
    public let path: String
    public let headers: [String: String]
    public let body: [UInt8]
}

/// An answer of HTTP/1.1, whose connection is closed after it.
public struct ServedAnswer: Sendable {
    public let status: Int
    public let headers: [String: String]
    public let body: [UInt8]

    public init(_ status: Int, _ body: [UInt8] = [], headers: [String: String] = [:]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    fileprivate var octets: [UInt8] {
        var head = "HTTP/1.1 \(status) as told\r\nconnection: close\r\ncontent-length: \(body.count)\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        return Array("\(head)\r\n".utf8) + body
    }
}

/// HTTP on a free port of this machine, by sockets alone. Where `handle` gives nil, the server is silent until it ends.
public final class LocalServer: Sendable {
    public let port: Int
    private let listening: Int32
    private let silent = Locked<[Int32]>([])
    private let handle: @Sendable (ReceivedRequest) -> ServedAnswer?

    public var url: String { "http://127.0.0.1:\(port)" }

    public init(_ handle: @escaping @Sendable (ReceivedRequest) -> ServedAnswer?) throws {
        self.handle = handle
        listening = socket(AF_INET, streamSocket, 0)
        port = try Self.bound(listening)
        guard listen(listening, 16) == 0 else { throw SocketError(code: errno) }
        Thread.detachNewThread { [weak self, listening] in
            while case let connection = accept(listening, nil, nil), connection >= 0 {
                guard let server = self else {
                    close(connection)
                    return
                }
                Thread.detachNewThread { server.serve(connection) }
            }
        }
    }

    /// Ends it, and what waits for an answer.
    public func stop() {
        shutdown(listening, Int32(SHUT_RDWR))
        close(listening)
        for connection in silent.with({ $0 }) { close(connection) }
        silent.with { $0 = [] }
    }

    /// A port of this machine that nobody listens at.
    public static func freePort() throws -> Int {
        let probe = socket(AF_INET, streamSocket, 0)
        defer { close(probe) }
        return try bound(probe)
    }

    private static func bound(_ socket: Int32) throws -> Int {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        guard isBound else { throw SocketError(code: errno) }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    private func serve(_ connection: Int32) {
        #if canImport(Darwin)
            // A client that is gone must not end the tests.
            var isOn: Int32 = 1
            setsockopt(connection, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #endif
        guard let request = receive(connection) else {
            close(connection)
            return
        }
        guard let answer = handle(request) else { return silent.with { $0.append(connection) } }
        var left = answer.octets[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, noSignal) }
            if count <= 0 { break }
            left = left.dropFirst(count)
        }
        close(connection)
    }

    /// Nil where the other side ends before its request does.
    private func receive(_ connection: Int32) -> ReceivedRequest? {
        var octets: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 8_192)
        while true {
            if let request = Self.request(in: octets) { return request }
            let count = recv(connection, &piece, piece.count, 0)
            if count <= 0 { return nil }
            octets += piece[..<count]
        }
    }

    private static func request(in octets: [UInt8]) -> ReceivedRequest? {
        guard let end = Data(octets).range(of: Data("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: octets[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].components(separatedBy: " ")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.components(separatedBy: ":")
            headers[parts[0].lowercased()] = parts.dropFirst().joined(separator: ":").trimmingCharacters(in: .whitespaces)
        }
        let body = octets[end.upperBound...]
        guard body.count >= headers["content-length"].flatMap({ Int($0) }) ?? 0, words.count > 1 else { return nil }
        return ReceivedRequest(method: words[0], path: words[1], headers: headers, body: Array(body))
    }
}

public struct SocketError: Error {
    public let code: Int32
}
