import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Which requests to the log have the access token, on a server that refuses lookups without.
final class LookupTokenTests: ServedTests {
    override class var settings: [String: String] { ["CALLSIGN_KT_REQUIRE_AUTH": "1"] }

    /// Requests to any server come to the one.
    private final class ListeningHTTP: HTTPTransport {
        private let http = platformHTTP()
        let asked = Locked<[HTTPRequest]>([])
        let url = Locked("")

        func send(_ request: HTTPRequest) async throws -> HTTPAnswer {
            asked.with { $0.append(request) }
            var sent = request
            sent.url = url.with { $0 } + Self.path(request)
            return try await http.send(sent)
        }

        static func path(_ request: HTTPRequest) -> String {
            let parts = request.url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
            return parts.count == 4 ? "/\(parts[3])" : ""
        }
    }

    private let http = ListeningHTTP()

    override func setUp() async throws {
        try await super.setUp()
        let url = server.url
        http.url.with { $0 = url }
    }

    func testLookupsHaveTheTokenFilesOfTheLogDoNot() async throws {
        let ann = try await server.person("Ann", http)
        let bob = try await server.person("Bob")
        try await befriend(ann, bob)
        try await ann.call(known(bob.userId, "userId")).end()
        let ofLog = http.asked.with { $0 }.filter { !ListeningHTTP.path($0).hasPrefix("/app/") }
        let lookups = ofLog.filter { ListeningHTTP.path($0).hasPrefix("/api/") }
        let files = ofLog.filter { !ListeningHTTP.path($0).hasPrefix("/api/") }
        XCTAssertFalse(lookups.isEmpty)
        for each in lookups { XCTAssertNotNil(each.headers["authorization"], each.url) }
        XCTAssertTrue(files.contains { ListeningHTTP.path($0).hasPrefix("/tile/") })
        for each in files { XCTAssertNil(each.headers["authorization"], each.url) }
        for app in [ann, bob] { await app.close() }
    }

    func testNoOtherServerHearsTheTokenAndWithoutASessionALookupGoesWithout() async throws {
        let seen = try server.seen(http)
        let session = try await Session.open(seen, MemoryAppStorage())
        let address = server.newAddress("Ann")
        let sent = try await session.requestCode(email: address, displayName: "Ann")
        _ = try await session.verifyCode(sent.challengeId, server.code(for: address))
        let transport = SessionTransport(seen, session)
        let http = http
        func lookUp(at url: String) async throws -> (Int, String?) {
            http.asked.with { $0 = [] }
            let request = LogRequest(url: "\(url)/api/get-public-keys", body: "{}", answerOctetsMax: 10_000)
            let status = try await transport.send(request).status
            return (status, http.asked.with { $0.last?.headers["authorization"] })
        }
        let own = try await lookUp(at: server.url)
        let token = try await session.accessToken()
        XCTAssertEqual(own.0, 422)
        XCTAssertEqual(own.1, "Bearer \(token)")
        for url in ["http://log.example", "\(server.url)@log.example", String(server.url.dropLast())] {
            let other = try await lookUp(at: url)
            XCTAssertEqual(other.0, 401, url)
            XCTAssertNil(other.1, url)
        }
        try await session.logout()
        let after = try await lookUp(at: server.url)
        XCTAssertEqual(after.0, 401)
        XCTAssertNil(after.1)
    }
}
