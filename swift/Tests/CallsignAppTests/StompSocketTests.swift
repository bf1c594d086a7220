import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// What a server of ours never sends: the socket ends, and nothing breaks.
@CallsignActor final class StompSocketTests: XCTestCase, @unchecked Sendable {
    private final class Scripted: Socket {
        let incoming: AsyncStream<SocketEvent>
        let sent = Locked<[String]>([])
        let isCancelled = Locked(false)
        private let telling: AsyncStream<SocketEvent>.Continuation

        init() { (incoming, telling) = AsyncStream.makeStream() }

        func tell(_ event: SocketEvent) { telling.yield(event) }
        func tell(_ text: String) { tell(.text(text)) }
        func send(_ text: String) { sent.with { $0.append(text) } }
        func cancel() { isCancelled.with { $0 = true } }
    }

    private func opened(
        _ scripted: Scripted,
        answerWithinMs: Int = 3_600_000,
        _ onConnected: @escaping @CallsignActor ([String: String]) throws -> Void = { _ in }
    ) -> StompSocket {
        let beats = HeartBeatMs(outgoing: 3_600_000, incoming: 3_600_000)
        let greeting = StompGreeting(host: "localhost", accessToken: "kat", language: "", heartBeatMs: beats)
        scripted.tell(.open)
        return StompSocket(
            scripted, greeting, answerWithinMs: answerWithinMs, onConnected: onConnected, onMessage: { _ in throw Odd() })
    }

    private struct Odd: Error {}

    private func code(of answer: Deferred<[String: String]>) async -> String? {
        do {
            _ = try await answer.value
            return nil
        } catch {
            return (error as? CallsignError)?.code
        }
    }

    func testNonsenseBeforeConnectedEndsTheSocketAsTheServersFault() async throws {
        let odd = [
            "", "\0", "x", "CONNECTED\n", "RECEIPT\nreceipt-id:1\n\n\0", "MESSAGE\nsubscription:errors\n\n{}\0",
            "CONNECTED\nheart-beat:1\n\n\0", "CONNECTED\nheart-beat:1,2,3\n\n\0", "CONNECTED\nheart-beat:-1,2\n\n\0",
            "CONNECTED\nheart-beat:99999999,1\n\n\0", "CONNECTED\nheart-beat:+1,1\n\n\0", "CONNECTED\nheart-beat:,\n\n\0",
            String(repeating: "x", count: 1024 * 1024 + 1),
        ]
        for text in odd {
            let scripted = Scripted()
            let socket = opened(scripted)
            scripted.tell(text)
            let close = try await socket.closed.value
            XCTAssertEqual(close.code, 1002, String(text.prefix(40)))
            XCTAssertEqual(close.error?.code, "ANSWER_INVALID", String(text.prefix(40)))
            XCTAssertTrue(scripted.isCancelled.with { $0 })
        }
    }

    func testNonsenseAfterConnectedEndsTheSocketAsTheServersFault() async throws {
        let odd = [
            "CONNECTED\n\n\0", "UNKNOWN\n\n\0", "MESSAGE\nsubscription:errors\n\nno JSON\0", "MESSAGE\n\n{}\0",
            "MESSAGE\na:\\x\n\n\0", "\r\n",
        ]
        for text in odd {
            let scripted = Scripted()
            let socket = opened(scripted)
            scripted.tell("CONNECTED\nheart-beat:9999999,9999999\nmax-frame:-9223372036854775808\n\n\0")
            scripted.tell(text)
            let close = try await socket.closed.value
            XCTAssertEqual(close.code, 1002, text)
        }
    }

    func testBeatsAreNoFramesAndAnUnknownReceiptIsPassedOver() async throws {
        let scripted = Scripted()
        let socket = opened(scripted)
        for text in ["\n", "CONNECTED\n\n\0", "\n", "RECEIPT\nreceipt-id:99\n\n\0", "RECEIPT\n\n\0"] { scripted.tell(text) }
        scripted.tell("MESSAGE\nsubscription:errors\n\n{\"receiptId\":\"99\"}\0")
        scripted.tell("ERROR\nreason:token_expired\nretry-after:9223372036854775807\n\n{}\0")
        scripted.tell(.closed(code: 4401, reason: ""))
        let close = try await socket.closed.value
        XCTAssertEqual(close.code, 4401)
        XCTAssertEqual(close.reason, "token_expired")
        XCTAssertEqual(close.retryAfterMs, 600_000)
        XCTAssertEqual(close.error?.code, "TOKEN_EXPIRED")
    }

    func testRequestsAreAnsweredByTheirReceiptsRefusedByTheErrorsQueueAndLostWithTheSocket() async throws {
        let scripted = Scripted()
        let connected = Deferred<Void>()
        let socket = opened(scripted) { _ in connected.complete(()) }
        XCTAssertThrowsError(try socket.begin("SEND", [])) { XCTAssertTrue($0.hasCode("OFFLINE")) }
        scripted.tell("CONNECTED\nmax-frame:100\n\n\0")
        try await connected.value
        XCTAssertThrowsError(try socket.begin("SEND", [], body: String(repeating: "é", count: 50))) {
            XCTAssertTrue($0.hasCode("BODY_TOO_LARGE"))
        }
        let answers = try (0..<3).map { try socket.begin("SEND", [StompHeader("n", "\($0)")]) }
        scripted.tell("RECEIPT\nreceipt-id:2\nrecovered:true\n\n\0")
        scripted.tell("MESSAGE\nsubscription:errors\n\n{\"receiptId\":\"3\",\"problem\":{\"code\":\"NOT_IN_CALL\",\"title\":\"No\"}}\0")
        scripted.tell(.closed(code: 1006, reason: ""))
        let first = try await answers[0].value
        XCTAssertEqual(first["recovered"], "true")
        let refused = await code(of: answers[1])
        let lost = await code(of: answers[2])
        XCTAssertEqual([refused, lost], ["NOT_IN_CALL", "OFFLINE"])
        XCTAssertEqual(
            scripted.sent.with { $0.map { String($0.prefix { $0 != "\n" }) } },
            ["CONNECT", "SUBSCRIBE", "SEND", "SEND", "SEND"]
        )
    }

    func testASilentServerIsGivenUp() async throws {
        let close = try await opened(Scripted(), answerWithinMs: 10).closed.value
        XCTAssertEqual(close.code, 1006)
    }
}
