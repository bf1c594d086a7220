import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// New keys of a contact are asked about, and links are read.
final class KeyQuestionsTests: ServedTests {
    /// Bob on a new device, the only one from now on.
    private func startOver(_ address: String) async throws -> Callsign {
        let storage = MemoryAppStorage()
        let next = try await server.app(storage)
        try await server.signIn(next, "Bob", address)
        try await next.devices.listState.first { if case .waiting = $0 { true } else { false } }
        try await server.prove(storage, address)
        try await next.devices.startOver()
        return next
    }

    func testCallsToAndFromAPersonWhoStartedOverWaitUntilThoseKeysAreAccepted() async throws {
        let storage = MemoryAppStorage()
        let ann = try await server.app(storage)
        let annId = try await server.signIn(ann, "Ann")
        let bob = try await server.app()
        let address = server.newAddress("Bob")
        let bobId = try await server.signIn(bob, "Bob", address)
        try await befriend(ann, bob)
        try await ann.call(bobId).end()
        let newBob = try await startOver(address)

        let asked = try await failure { _ = try await ann.call(bobId) }
        XCTAssertEqual(asked.code, "KEYS_RESET")
        XCTAssertEqual(asked.members.text("userId"), "\(bobId)")
        XCTAssertEqual(asked.members.text("kind"), "reset")
        let listHash = try asked.members.needText("listHash")
        let other = try await failure { try await ann.contacts.acceptKeys(bobId, listHash: "another") }
        XCTAssertEqual(other.code, "KEYS_RESET")

        let call = try await newBob.call(annId)
        let incoming = try await ann.nextRinging()
        let refused = try await failure { try await incoming.answer() }
        XCTAssertEqual(refused.code, "KEYS_RESET")
        XCTAssertEqual(incoming.isVerified, false)
        try await ann.contacts.acceptKeys(bobId, listHash: listHash)
        try await incoming.answer()
        try await call.becomes(.active)
        try await call.end()
        await ann.close()

        let restarted = try await server.app(storage)
        try await restarted.resume()
        try await restarted.call(bobId).end()
        await (try startOver(address)).close()
        let next = try await failure { _ = try await restarted.call(bobId) }
        XCTAssertEqual(next.code, "KEYS_RESET")
        XCTAssertNotEqual(next.members.text("listHash"), listHash)
        let late = try await failure { try await restarted.contacts.acceptKeys(bobId, listHash: listHash) }
        XCTAssertEqual(late.code, "KEYS_RESET")
        for app in [restarted, bob, newBob] { await app.close() }
    }

    func testTheNameOfALinksOwnerIsNotAskedForWhereTheFragmentDoesNotHold() async throws {
        let http = AlteredHTTP()
        let asked = Locked<[String]>([])
        let ann = try await server.person("Ann", http)
        let bob = try await server.person("Bob")
        let link = try await bob.contacts.shareLink()
        let parts = link.split(separator: "#").map(String.init)
        let (url, fragment) = (parts[0], parts[1])
        http.alterations.before = { operation in asked.with { $0.append(operation) } }
        let damaged = [
            String(fragment.dropFirst()),
            String(fragment.dropLast(4)),
            fragment.replacingOccurrences(of: "l=", with: "l=A"),
            fragment.replacingOccurrences(of: "n=A", with: "n=B"),
            "top",
        ]
        for each in damaged {
            let error = try await failure { _ = try await ann.contacts.open("\(url)#\(each)") }
            XCTAssertEqual(error.code, "MALFORMED", each)
        }
        XCTAssertFalse(asked.with { $0 }.contains { $0.hasPrefix("share-token") })
        guard case .link(_, _, let isNamed, _) = try await ann.contacts.open(link) else { return XCTFail("no link") }
        XCTAssertTrue(isNamed)
        await ann.close()
        await bob.close()
    }

    func testALinkThatNamesAnotherUserThanTheServerDoesIsRefusedAndNobodyIsAdded() async throws {
        let http = AlteredHTTP()
        let ann = try await server.person("Ann", http)
        let bob = try await server.person("Bob")
        let mallory = try await server.person("Mallory")
        let bobs = try await bob.contacts.shareLink().split(separator: "#").map(String.init)
        let others = try await mallory.contacts.shareLink().split(separator: "#").map(String.init)
        let error = try await failure { try await ann.contacts.requestByLink("\(others[0])#\(bobs[1])") }
        XCTAssertEqual(error.code, "KEYS_REFUSED")
        XCTAssertEqual(error.members.text("userId"), mallory.userId.map { "\($0)" })
        let requests = try await mallory.contacts.requests()
        XCTAssertEqual(requests.items, [])
        for app in [ann, bob, mallory] { await app.close() }
    }
}
