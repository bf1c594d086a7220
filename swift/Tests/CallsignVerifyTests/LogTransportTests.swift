import Foundation
import TestSupport
import XCTest

@testable import CallsignVerify

/// The platform's HTTP client against a server on this machine.
final class LogTransportTests: XCTestCase {
    private let transport = URLSessionTransport()

    private func serve(_ handle: @escaping @Sendable (ReceivedRequest) -> ServedAnswer?) throws -> LocalServer {
        let server = try LocalServer(handle)
        addTeardownBlock { server.stop() }
        return server
    }

    private func send(_ server: LocalServer, _ body: String?, octetsMax: Int = 1_000) async throws -> LogAnswer {
        try await transport.send(LogRequest(url: "\(server.url)/api/x", body: body, answerOctetsMax: octetsMax))
    }

    private func clientOf(_ url: String, timeoutMs: Int = 20_000) throws -> LogClient {
        let vectors = try readVectors("derived-kt-e2e")
        let keys = try LogKeys.ofVerifierKey(vectors.text("log_vkey"), vrfPublicKey: vectors.text("vrf_pk_base64"))
        return try LogClient(
            keys: keys, url: url, store: MemoryCheckpointStore(), transport: transport, timeoutMs: timeoutMs)
    }

    func testABodyIsPostedAsJSONAndAnyStatusIsAnAnswer() async throws {
        let server = try serve { request in
            let told = "\(request.method) \(request.path) \(request.headers["content-type"] ?? "-") "
            return ServedAnswer(request.body.isEmpty ? 404 : 200, Array(told.utf8) + request.body)
        }
        let posted = try await send(server, #"{"a":1}"#)
        XCTAssertEqual(LogAnswer(status: 200, body: Array(#"POST /api/x application/json {"a":1}"#.utf8)), posted)
        let fetched = try await send(server, nil)
        XCTAssertEqual(LogAnswer(status: 404, body: Array("GET /api/x - ".utf8)), fetched)
    }

    func testRedirectsAreNotFollowedAndAnEmptyAnswerIsOne() async throws {
        let server = try serve { request in
            request.path == "/elsewhere" ? ServedAnswer(200, [1]) : ServedAnswer(302, headers: ["location": "/elsewhere"])
        }
        for body in [nil, "{}"] {
            let answer = try await send(server, body)
            XCTAssertEqual(LogAnswer(status: 302, body: []), answer)
        }
    }

    func testAnAnswerAboveItsBoundIsCutOff() async throws {
        let server = try serve { _ in ServedAnswer(200, [UInt8](repeating: 7, count: 100_000)) }
        let whole = try await send(server, nil, octetsMax: 100_000)
        XCTAssertEqual(100_000, whole.body.count)
        do {
            _ = try await send(server, nil, octetsMax: 99_999)
            XCTFail("the answer is too long")
        } catch let error as TransportError {
            XCTAssertEqual("an answer has more than 99999 bytes", "\(error)")
        }
    }

    func testNoCookieIsKept() async throws {
        let server = try serve { request in
            ServedAnswer(200, Array((request.headers["cookie"] ?? "none").utf8), headers: ["set-cookie": "a=b"])
        }
        for _ in 0..<2 {
            let answer = try await send(server, nil)
            XCTAssertEqual("none", String(decoding: answer.body, as: UTF8.self))
        }
    }

    func testARequestThatIsCancelledEnds() async throws {
        let (asked, asking) = AsyncStream<Void>.makeStream()
        let server = try serve { _ in
            asking.yield()
            return nil
        }
        let request = LogRequest(url: server.url, body: nil, answerOctetsMax: 1)
        let waiting = Task { [transport] in try await transport.send(request) }
        for await _ in asked { break }
        waiting.cancel()
        let result = await waiting.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
    }

    func testATaskThatIsCancelledAlreadyAsksNothing() async throws {
        let server = try serve { _ in nil }
        let (never, ending) = AsyncStream<Void>.makeStream()
        let request = LogRequest(url: server.url, body: nil, answerOctetsMax: 1)
        let waiting = Task { [transport] in
            for await _ in never {}
            return try await transport.send(request)
        }
        waiting.cancel()
        ending.finish()
        let result = await waiting.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
    }

    func testAClientWithoutAServerHasNoAnswer() async throws {
        let outcome = try await clientOf("http://127.0.0.1:\(LocalServer.freePort())").refreshCheckpoint()
        guard case .unanswered(let unanswered) = outcome else { return XCTFail("\(outcome)") }
        XCTAssertNil(unanswered.status)
        let nowhere = try await clientOf("no URL").refreshCheckpoint()
        guard case .unanswered = nowhere else { return XCTFail("\(nowhere)") }
    }

    func testAClientWhoseServerIsSilentStopsWaiting() async throws {
        let server = try serve { _ in nil }
        let outcome = try await clientOf("\(server.url)/", timeoutMs: 200).refreshCheckpoint()
        XCTAssertEqual(.unanswered(Unanswered("checkpoint was not answered in 200 ms")), outcome)
    }

    func testAClientThatIsCancelledThrowsThat() async throws {
        let (asked, asking) = AsyncStream<Void>.makeStream()
        let server = try serve { _ in
            asking.yield()
            return nil
        }
        let client = try clientOf(server.url)
        let waiting = Task { try await client.refreshCheckpoint() }
        for await _ in asked { break }
        waiting.cancel()
        let result = await waiting.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
    }

    func testWhatTheServerRefusesHasItsStatusAndCode() async throws {
        let server = try serve { _ in ServedAnswer(404, Array("\u{feff}{\"code\":\"UNKNOWN_PUBLIC_KEY_HASH\"}".utf8)) }
        let device = DeviceToLookUp(userId: 1, deviceId: 2, vrfHash: "")
        let outcome = try await clientOf(server.url).lookUp(device)
        guard case .unanswered(let unanswered) = outcome else { return XCTFail("\(outcome)") }
        XCTAssertEqual(404, unanswered.status)
        XCTAssertEqual("UNKNOWN_PUBLIC_KEY_HASH", unanswered.code)
    }

    func testAnAgeWithoutWitnessesIsRefused() throws {
        let vectors = try readVectors("derived-kt-e2e")
        let keys = try LogKeys.ofVerifierKey(vectors.text("log_vkey"), vrfPublicKey: vectors.text("vrf_pk_base64"))
        let code = logErrorCode {
            _ = try LogClient(keys: keys, url: "", store: MemoryCheckpointStore(), transport: self.transport, maxAgeMs: 1)
        }
        XCTAssertEqual(.keyInvalid, code)
    }
}
