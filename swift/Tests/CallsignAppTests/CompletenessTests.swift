import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// An app whose keys are proved by the log's index to be the newest, with a server that keeps one, and that lies.
final class CompletenessTests: ServedTests {
    override class var settings: [String: String] { ["CALLSIGN_INDEX_SECONDS": "1"] }

    private typealias Lie = @Sendable (_ operation: String, _ answer: [String: JSONValue]) throws -> [String: JSONValue]

    /// Operations of the app, and the log's lookups as `get-public-keys`.
    private final class LyingHTTP: HTTPTransport {
        private let http = platformHTTP()
        let lie = Locked<Lie>({ $1 })

        func send(_ request: HTTPRequest) async throws -> HTTPAnswer {
            var answer = try await http.send(request)
            let operation = ["get-public-keys", "user/publicKeys"].first { request.url.contains("/api/\($0)") }
            guard let operation, answer.status == 200, let members = answer.body.flatMap({ JSONValue(octets: $0)?.object })
            else { return answer }
            answer.body = Array(JSONValue.object(try lie.with { $0 }(operation, members)).text.utf8)
            return answer
        }
    }

    /// Two contacts with a device list each; the first one's app is made so.
    private struct TwoContacts {
        let ann: Callsign
        let bob: Callsign
        let bobId: UInt64

        /// The check at which the keys of the second one are refused to the first.
        func refusal() async throws -> String? {
            do {
                _ = try await ann.contacts.comparisonCode(bobId)
                return nil
            } catch let error as CallsignError where error.code == CallsignError.LocalCode.keysRefused {
                return error.members.text("check")
            }
        }

        func close() async {
            await ann.close()
            await bob.close()
        }
    }

    private let http = LyingHTTP()

    private func contacts(
        _ completeness: CompletenessDemand? = nil, _ storage: any AppStorage = MemoryAppStorage()
    ) async throws -> TwoContacts {
        let ann = try await server.app(storage, http, completeness: completeness)
        let annId = try await server.signIn(ann, "Ann")
        let bob = try await server.app()
        let bobId = try await server.signIn(bob, "Bob")
        for app in [ann, bob] { try await app.devices.listState.first { if case .listed = $0 { true } else { false } } }
        // A link would bring the list and the checkpoint of the index.
        try await ann.contacts.request(bobId)
        try await bob.contacts.accept(annId)
        return TwoContacts(ann: ann, bob: bob, bobId: bobId)
    }

    /// There is no index before the log has an entry.
    override func setUp() async throws {
        try await super.setUp()
        let first = try await server.person("First")
        let request = HTTPRequest(method: "GET", url: "\(server.url)/index/checkpoint", octetsMax: 10_000, timeoutMs: 15_000)
        while try await platformHTTP().send(request).status != 200 { try await Task.sleep(nanoseconds: 10_000_000) }
        await first.close()
    }

    func testKeysThatTheIndexProvesAreUsedAndItIsRememberedAndToldToOthers() async throws {
        let storage = MemoryAppStorage()
        let contacts = try await contacts(.demand, storage)
        let call = try await contacts.ann.call(contacts.bobId)
        try await contacts.bob.nextRinging().answer()
        try await call.end()
        let link = try await contacts.ann.contacts.shareLink()
        XCTAssertTrue(link.contains("&n=") && link.contains("&i="), link)
        guard case .link(_, _, let isNamed, _) = try await contacts.bob.contacts.open(link) else { return XCTFail("no link") }
        XCTAssertTrue(isNamed)
        let pins = try await developmentPins(server.url)
        let key = "checkpoint.\(try known(contacts.ann.userId, "userId")).\(pins.name)"
        let (own, index) = (try await storage.get(key), try await storage.get("\(key).index"))
        XCTAssertNotNil(own)
        XCTAssertTrue(try known(index, "index").contains("\(pins.origin)/index"))
        await contacts.close()
    }

    func testAnAnswerWithoutTheProofIsRefusedUnlessNoneWasEverThereOrTheAppAsksForNone() async throws {
        http.lie.with {
            $0 = { operation, answer in
                let isLookup = operation == "get-public-keys"
                return try answer.changing(isLookup ? "results" : "users") { $0[isLookup ? "indexProof" : "absent"] = nil }
            }
        }
        let unindexed = try await contacts()
        let before = try await unindexed.refusal()
        XCTAssertNil(before)
        http.lie.with { $0 = { $1 } }
        let proved = try await unindexed.refusal()
        XCTAssertNil(proved)
        http.lie.with {
            $0 = { _, answer in try answer.changing(answer["results"] == nil ? "users" : "results") { $0["indexProof"] = nil } }
        }
        let after = try await unindexed.refusal()
        XCTAssertEqual(after, "completeness")
        let off = try await contacts(.off)
        let none = try await off.refusal()
        XCTAssertNil(none)
        for each in [unindexed, off] { await each.close() }
    }

    func testADeviceListThatTheServerLeavesOutAtTheFirstMeetingIsMissed() async throws {
        let demanding = try await contacts(.demand)
        let bobId = demanding.bobId
        http.lie.with {
            $0 = { operation, answer in
                if operation == "get-public-keys" { return answer }
                return try answer.changing("users") { user in
                    guard try user.needId("userId") == bobId else { return }
                    user["deviceList"] = nil
                    user["deviceListHash"] = nil
                }
            }
        }
        let refusal = try await demanding.refusal()
        XCTAssertEqual(refusal, "completeness")
        await demanding.close()
    }
}

extension [String: JSONValue] {
    /// With each object of a list changed.
    fileprivate func changing(
        _ name: String, _ change: (inout [String: JSONValue]) throws -> Void
    ) throws -> [String: JSONValue] {
        var answer = self
        answer[name] = .array(
            try members(name).map { object in
                var changed = object
                try change(&changed)
                return .object(changed)
            })
        return answer
    }
}
