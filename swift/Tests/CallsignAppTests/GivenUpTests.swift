import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Callers that give up, and apps that are gone: nothing waits for ever, and nothing goes on without them.
final class GivenUpTests: ServedTests {
    /// The socket of the answer may say that it was cancelled before anybody waits for it.
    func testARequestOfACallerThatHadGivenUpBeforeEnds() async throws {
        let http = URLSessionHTTP()
        let request = HTTPRequest(method: "GET", url: server.url, octetsMax: 1_000_000, timeoutMs: 10_000)
        for _ in 0..<50 {
            let asking = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await http.send(request)
            }
            do {
                _ = try await asking.value
                XCTFail("it was sent")
            } catch {
                // It says so, in the words of its system.
            }
        }
    }

    func testAnAppThatIsClosedAndLetGoOfIsGone() async throws {
        let storage = MemoryAppStorage()
        var app: Callsign? = try await server.person("Ann", URLSessionHTTP(), storage)
        weak var gone = app
        weak var session = await app?.session
        let events = try known(app, "app").events
        let users = try known(app, "app").user.values
        XCTAssertNotNil(gone)
        await app?.close()
        app = nil
        // They end with it.
        for await _ in events {}
        for await _ in users {}
        XCTAssertNil(gone)
        // The last request lets go of it on a thread of its own.
        for _ in 0..<5_000 where session != nil { try await Task.sleep(nanoseconds: 1_000_000) }
        XCTAssertNil(session)
    }
}
