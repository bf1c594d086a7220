import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

/// Answers that no server of ours gives: the app hears a `CallsignError`. By the transport of this system, from a real socket.
final class OddAnswersTests: XCTestCase {
    func testWhatIsNoJSONCutOrEndlessIsRefused() async throws {
        for text in ["<html>", "{\"userId\"", " ", "[", "[]", "null", "7", String(repeating: "x", count: 9_000_000)] {
            let odd = try LocalServer { _ in ServedAnswer(200, Array(text.utf8)) }
            defer { odd.stop() }
            let server = try Server(odd.url)
            for method in ["GET", "DELETE"] {
                let code = await codeOf { _ = try await server.request(method, "user") }
                XCTAssertEqual(code, "ANSWER_INVALID", String(text.prefix(20)))
            }
        }
    }

    func testARedirectIsNotFollowed() async throws {
        for status in [301, 302, 303, 307, 308] {
            let followed = Locked(0)
            let elsewhere = try LocalServer { _ in
                followed.with { $0 += 1 }
                return ServedAnswer(200, Array("{}".utf8))
            }
            let taken = "\(elsewhere.url)/taken"
            let odd = try LocalServer { _ in ServedAnswer(status, headers: ["location": taken]) }
            defer {
                odd.stop()
                elsewhere.stop()
            }
            let code = await codeOf { _ = try await Server(odd.url).request("POST", "refresh-token", body: [:]) }
            XCTAssertEqual(code, "ANSWER_INVALID", "\(status)")
            XCTAssertEqual(followed.with { $0 }, 0, "\(status)")
        }
    }

    func testACallerThatGivesUpIsToldSoWhileTheServerIsSilent() async throws {
        let asked = Signal()
        let silent = try LocalServer { _ in
            asked.give()
            return nil
        }
        defer { silent.stop() }
        let server = try Server(silent.url)
        let asking = Task { try await server.request("GET", "user") }
        await asked.given()
        asking.cancel()
        do {
            _ = try await asking.value
            XCTFail("it was answered")
        } catch {
            XCTAssertTrue(error is CancellationError, "\(error)")
        }
    }

    func testACallerThatGivesUpAtAnyMomentIsTold() async throws {
        let server = try LocalServer { _ in ServedAnswer(200, Array("{}".utf8)) }
        defer { server.stop() }
        let http = URLSessionHTTP()
        let request = HTTPRequest(method: "GET", url: server.url, octetsMax: 10, timeoutMs: 10_000)
        for yields in 0..<100 {
            let asking = Task { try await http.send(request) }
            for _ in 0..<yields { await Task.yield() }
            asking.cancel()
            if case .failure(let error) = await asking.result { XCTAssertTrue(error is CancellationError, "\(error)") }
        }
    }

    func testASilentServerIsGivenUp() async throws {
        let silent = try LocalServer { _ in nil }
        defer { silent.stop() }
        let request = HTTPRequest(method: "GET", url: silent.url, octetsMax: 10, timeoutMs: 100)
        do {
            _ = try await URLSessionHTTP().send(request)
            XCTFail("it was answered")
        } catch {
            XCTAssertFalse(error is CallsignError, "\(error)")
        }
    }

    func testNumbersThatNoClockHasChangeNothingAndCrashNothing() async throws {
        for date in ["Mon, 30 Nov 2026 00:30:24 GMT", "Mon, 99 Nov 99999 00:30:24 GMT", "", "Mon, 30 Nov 2026 00:30:24\r\n GMT"] {
            for retryAfter in ["-9223372036854775808", "9223372036854775807", "+3", "x"] {
                let http = Answering { _ in
                    HTTPAnswer(status: 503, headers: ["date": date, "retry-after": retryAfter], body: Array("{}".utf8))
                }
                let server = try Server("https://localhost", http: http, nowMs: { 0 })
                let asking = Task { _ = try await server.request("GET", "user") }
                asking.cancel()
                _ = await asking.result
                XCTAssertEqual(server.serverTimeMs(), server.isTimeKnown ? 1_795_998_624_000 : 0)
            }
        }
        let server = try Server("https://localhost", nowMs: { 0 })
        for serverMs in [Int.min, -1, Int.max] { server.hearTime(serverMs) }
        XCTAssertFalse(server.isTimeKnown)
    }
}
