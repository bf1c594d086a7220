import CallsignApp
import CallsignVerify
import Foundation

/// STOMP over plain TCP, for systems without WebSockets: the same frames, one after the other, each ending in a NUL. TCP has no
/// close codes: they are told by the ERROR before, as docs/protocol/socket.md lists them.
public final class TCPStompTransport: SocketTransport {
    private let host: String
    private let port: UInt16

    /// To an address such as `127.0.0.1:41337`, whatever the server's own is.
    public init(_ address: String) {
        let parts = address.split(separator: ":")
        host = String(parts.first ?? "")
        port = parts.last.flatMap { UInt16($0) } ?? 0
    }

    public func open(_ request: SocketRequest) throws -> any Socket { TCPSocket(host, port, request.messageOctetsMax) }
}

private final class TCPSocket: Socket {
    let incoming: AsyncStream<SocketEvent>
    private let opened = Locked<OpenFile?>(nil)
    private let isCancelled = Locked(false)
    private let sending = DispatchQueue(label: "stomp")

    init(_ host: String, _ port: UInt16, _ messageOctetsMax: Int) {
        let (incoming, telling) = AsyncStream<SocketEvent>.makeStream()
        self.incoming = incoming
        let (opened, isCancelled) = (opened, isCancelled)
        Thread.detachNewThread {
            var frames = Frames(messageOctetsMax)
            if let file = try? OpenFile(connectedTCP(host, port)) {
                opened.with { $0 = file }
                if isCancelled.with({ $0 }) { file.end() }
                telling.yield(.open)
                while !frames.isTooLong {
                    let octets = file.read()
                    if octets.isEmpty { break }
                    for text in frames.taking(octets) { telling.yield(.text(text)) }
                }
                file.close()
            }
            telling.yield(frames.close)
            telling.finish()
        }
    }

    func send(_ text: String) {
        let opened = opened
        sending.async { _ = opened.with { $0 }?.write(Array(text.utf8)) }
    }

    func cancel() {
        isCancelled.with { $0 = true }
        opened.with { $0 }?.end()
    }
}

/// Cuts what comes into frames, and remembers why the server ends the connection.
private struct Frames {
    private let octetsMax: Int
    private var unread: [UInt8] = []
    private var reason: String?

    init(_ octetsMax: Int) { self.octetsMax = octetsMax }

    var isTooLong: Bool { unread.count > octetsMax }

    /// Texts as WebSocket has them, heart-beats too.
    mutating func taking(_ octets: [UInt8]) -> [String] {
        var texts: [String] = []
        for octet in octets {
            if unread.isEmpty && octet == 0x0a {
                texts.append("\n")
                continue
            }
            unread.append(octet)
            guard octet == 0 else { continue }
            let text = String(decoding: unread, as: UTF8.self)
            if unread.starts(with: "ERROR\n".utf8) { reason = Self.reason(in: text) }
            texts.append(text)
            unread = []
        }
        return texts
    }

    var close: SocketEvent { .closed(code: isTooLong ? 1009 : reason.map(Self.code) ?? 1006, reason: reason ?? "") }

    private static func reason(in error: String) -> String? {
        let prefix = "reason:"
        let line = error.utf8.split(separator: 0x0a).first { $0.starts(with: prefix.utf8) }
        return line.map { String(decoding: $0.dropFirst(prefix.utf8.count), as: UTF8.self) }
    }

    private static func code(_ reason: String) -> Int {
        switch reason {
        case "token_expired", "token_missing", "token_invalid", "session_revoked": 4401
        case "device_removed": 4403
        case "connect_timeout", "heart_beat_missed": 4408
        case "replaced": 4409
        case "slow": 4410
        case "restriction_changed": 4411
        case "draining", "moved": 1012
        case "internal", "overloaded", "store_unavailable": 1013
        case "frame_too_large", "too_many_headers", "header_line_too_long": 1009
        case "rate_limited", "device_not_registered": 1008
        default: reason.hasPrefix("too_many") ? 1008 : 1002
        }
    }
}
