import CallsignVerify
import Foundation

/// A server of HTTP that gives every request one answer, or none.
public final class OddServer: Sendable {
    private struct State {
        var requests = 0
        var connections: [OpenFile] = []
    }

    public let url: String
    private let listening: OpenFile
    private let state = Locked(State())
    private let firstAsked = Signal()

    public init(status: Int, text: String?, location: String? = nil) throws {
        let (file, port) = try listeningTCP()
        listening = OpenFile(file)
        url = "http://127.0.0.1:\(port)"
        var head = ["HTTP/1.1 \(status) Odd", "content-length: \(text?.utf8.count ?? 0)", "connection: close"]
        if let location { head.append("location: \(location)") }
        let answer = text.map { Array("\(head.joined(separator: "\r\n"))\r\n\r\n\($0)".utf8) }
        let (state, firstAsked) = (state, firstAsked)
        Thread.detachNewThread {
            while let connection = acceptedTCP(file) {
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
        listening.end()
        listening.close()
        for connection in state.with({ $0.connections }) { connection.end() }
    }

    private static func serve(_ connection: OpenFile, _ answer: [UInt8]?, _ onRequest: () -> Void) {
        defer { connection.close() }
        if connection.read().isEmpty { return }
        onRequest()
        if let answer {
            _ = connection.write(answer)
            connection.endWriting()
        }
        while !connection.read().isEmpty {}
    }
}
