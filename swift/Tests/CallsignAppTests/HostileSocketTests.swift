import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// A server whose frames come in their order, and make no sense.
final class HostileSocketTests: XCTestCase {
    private func connection(_ sockets: PlayedSockets, _ listener: PlayedListener) async throws -> Connection {
        let (server, session, _) = try await parts(sockets)
        return await Connection(server, session, listener)
    }

    private func parts(_ sockets: PlayedSockets) async throws -> (Server, Session, MemoryAppStorage) {
        let server = try Server("http://127.0.0.1:9", http: NoHTTP(), sockets: sockets, language: "en")
        let storage = MemoryAppStorage()
        let session: JSONValue = [
            "userId": "1", "sessionId": "1", "accessToken": "access", "refreshToken": "refresh", "challenge": "",
            "renewAtMs": JSONValue(1 << 52), "expiresAtMs": JSONValue(1 << 52),
        ]
        try await storage.put("session", session.text)
        return (server, try await Session.open(server, storage), storage)
    }

    @CallsignActor private static func connected(
        _ server: Server, _ session: Session, _ listener: AppListener
    ) -> Connection {
        let connection = Connection(server, session, listener)
        listener.connection = connection
        connection.connect()
        return connection
    }

    /// Nobody handles what comes then: it is for the next start.
    func testWhatComesToAnAppThatWasLetGoOfIsNotAcknowledged() async throws {
        let sockets = PlayedSockets { frame in
            frame.command == "SUBSCRIBE" ? [message(frame.headers["id"] ?? "", "1")] : []
        }
        let (server, session, storage) = try await parts(sockets)
        let log = try readVectors("derived-kt-e2e")
        let pins = try LogKeys.ofVerifierKey(log.text("log_vkey"), vrfPublicKey: log.text("vrf_pk_base64"))
        let registration = await DeviceRegistration(server, session, storage, softwareKeys(storage))
        var app: Callsign? = Callsign(server: server, pins: pins, storage: storage)
        let listener = try await AppListener(known(app, "app"), session, registration)
        app = nil
        let connection = await Self.connected(server, session, listener)
        await sockets.over.given()
        await connection.abort()
        XCTAssertEqual(sockets.sent.map(\.command).filter { $0 == "ACK" }, [])
    }

    /// Each queue's events are handled in the order in which they came, one at a time, and acknowledged in it.
    func testEventsAreHandledAndAcknowledgedInTheirOrder() async throws {
        let sockets = PlayedSockets { frame in
            guard frame.command == "SUBSCRIBE", let queue = frame.headers["id"], queue != "errors" else { return [] }
            return (0..<60).map { message(queue, "\(queue)-\($0)") }
        }
        let listener = await PlayedListener(of: 180)
        let connection = try await connection(sockets, listener)
        await connection.connect()
        await listener.all.given()
        try await connection.disconnect()
        await connection.abort()
        let handled = await listener.handled
        let acks = sockets.sent.filter { $0.command == "ACK" }.compactMap { $0.headers["id"] }
        XCTAssertEqual(handled.count, 180)
        for queue in Set(handled.map { $0.prefix { $0 != "-" } }) {
            let inOrder = (0..<60).map { "\(queue)-\($0)" }
            XCTAssertEqual(handled.filter { $0.hasPrefix("\(queue)-") }, inOrder)
            XCTAssertEqual(acks.filter { $0.hasPrefix("\(queue)-") }, inOrder)
        }
    }

    /// What it read would show a user who is signed out.
    func testAConnectionThatIsAbortedTakesItsReadingWithIt() async throws {
        let listener = await PlayedListener(of: .max)
        let connection = try await connection(PlayedSockets { _ in [] }, listener)
        await connection.connect()
        await listener.connected.isReached()
        await connection.abort()
        listener.connected.open()
        await listener.read.given()
        let isGivenUp = await listener.isGivenUp
        XCTAssertTrue(isGivenUp)
    }

    /// Odd octets in the place of others, in any frame.
    func testNoFrameEndsTheApp() async throws {
        for seed in 0..<300 {
            let dice = Locked(Dice(state: UInt64(seed)))
            let sockets = PlayedSockets { frame in
                let answers = frame.command == "SUBSCRIBE" ? [message(frame.headers["id"] ?? "", "e-\(seed)")] : []
                return dice.with { dice in answers.map { odd($0, &dice) } }
            } altering: { text in
                dice.with { Bool.random(using: &$0) ? text : odd(text, &$0) }
            }
            let listener = await PlayedListener(of: .max)
            let connection = try await connection(sockets, listener)
            await connection.connect()
            let watching = Task { _ = try? await connection.watch("/topic/call.1") { _ in } }
            for _ in 0..<100 { await Task.yield() }
            await connection.abort()
            await watching.value
        }
    }
}

private func message(_ subscription: String, _ eventId: String) -> String {
    let body: JSONValue = ["type": "x", "eventId": .string(eventId)]
    return StompFrame.format(
        "MESSAGE", [StompHeader("subscription", subscription), StompHeader("ack", eventId)], body: body.text)
}

private struct NoHTTP: HTTPTransport {
    func send(_ request: HTTPRequest) async throws -> HTTPAnswer { throw CallsignError("TEST", "There is no server.") }
}

@CallsignActor private final class PlayedListener: ConnectionListener {
    nonisolated let all = Signal()
    nonisolated let connected = Gate()
    nonisolated let read = Signal()
    private(set) var isGivenUp = false
    private(set) var handled: [String] = []
    private let count: Int

    init(of count: Int) { self.count = count }

    func onState(_ state: ConnectionState, failures: Int) {}

    func onConnected() async throws {
        await connected.pass()
        isGivenUp = Task.isCancelled
        read.give()
    }

    func onEvent(_ event: [String: JSONValue]) async throws {
        await Task.yield()
        handled.append(try event.needText("eventId"))
        if handled.count == count { all.give() }
    }

    func onDeviceMissing() async throws {}

    func onTrouble(_ error: any Error) {}
}

/// Answers as a server does, and with what `more` gives; `altering` changes each text.
private final class PlayedSockets: SocketTransport {
    private let more: @Sendable (StompFrame) -> [String]
    private let altering: @Sendable (String) -> String
    private let frames = Locked<[StompFrame]>([])

    /// Given at the first acknowledgement, and at the end.
    let over = Signal()

    init(_ more: @escaping @Sendable (StompFrame) -> [String], altering: @escaping @Sendable (String) -> String = { $0 }) {
        self.more = more
        self.altering = altering
    }

    var sent: [StompFrame] { frames.with { $0 } }

    func open(_ request: SocketRequest) throws -> any Socket { Played(self) }

    fileprivate func answers(to text: String) -> [String] {
        guard let frame = try? StompFrame(text) else { return [] }
        frames.with { $0.append(frame) }
        if frame.command == "ACK" { over.give() }
        var answers: [String] = []
        if frame.command == "CONNECT" {
            answers.append("CONNECTED\nversion:1.2\nheart-beat:0,0\nserver-time:1700000000000\ndevice:7\n\n\0")
        }
        if let receipt = frame.headers["receipt"] {
            answers.append(StompFrame.format("RECEIPT", [StompHeader("receipt-id", receipt)]))
        }
        return (answers + more(frame)).map(altering)
    }

    private final class Played: Socket {
        let incoming: AsyncStream<SocketEvent>
        private let telling: AsyncStream<SocketEvent>.Continuation
        private let sockets: PlayedSockets

        init(_ sockets: PlayedSockets) {
            self.sockets = sockets
            (incoming, telling) = AsyncStream<SocketEvent>.makeStream()
            telling.yield(.open)
        }

        func send(_ text: String) {
            for answer in sockets.answers(to: text) { telling.yield(.text(answer)) }
        }

        func cancel() {
            telling.finish()
            sockets.over.give()
        }
    }
}

/// The text with something odd in some place.
private func odd(_ text: String, _ dice: inout Dice) -> String {
    var octets = Array(text.utf8)
    for _ in 0..<Int.random(in: 1...3, using: &dice) {
        let at = Int.random(in: 0...octets.count, using: &dice)
        switch Int.random(in: 0..<4, using: &dice) {
        case 0 where at < octets.count: octets[at] = UInt8.random(in: 0...255, using: &dice)
        case 1: octets.removeSubrange(at..<min(octets.count, at + Int.random(in: 0...9, using: &dice)))
        case 2: octets.insert(contentsOf: Array(oddTexts[Int.random(in: 0..<oddTexts.count, using: &dice)].utf8), at: at)
        default: octets.insert(contentsOf: octets.prefix(at), at: at)
        }
    }
    return String(decoding: octets, as: UTF8.self)
}

private let oddTexts = [
    "\n", "\n\n", "\r\n", ":", "\\", "\\n", "\0", "\u{212a}", "e\u{301}", "9223372036854775807", "-9223372036854775808",
    "heart-beat:9999999,9999999\n", "max-frame:-1\n", "server-time:9223372036854775807\n", "retry-after:9223372036854775807\n",
    "receipt-id:1\n", "{", "[[[[[[[[", "ERROR\n",
]

/// The same numbers each time (SplitMix64).
private struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
