import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// By which names people are shown in calls, and whom texts lead to, on the built server; skipped where it is not built.
final class ContactNamesTests: ServedTests {
    private func isShown(_ call: Call, _ userId: UInt64, _ name: String) async throws {
        try await call.participants.first { people in people.first { $0.userId == userId }?.name == name }
    }

    func testAContactIsShownByTheNameThatTheUserGivesThemInCallsTooOnAllSides() async throws {
        let (bob, ann, cat) = try await (server.person("Bob"), server.person("Ann"), server.person("Cat"))
        for each in [ann, cat] { try await befriend(each, bob) }
        let bobId = try known(bob.userId, "bob")
        let contact = try await ann.contacts.rename(bobId, alias: " My  brother ").person
        XCTAssertEqual(contact, Person(userId: bobId, displayName: "Bob", alias: "My brother", isContact: true))
        let listed = try await ann.contacts.list().items.map(\.person)
        XCTAssertEqual(listed, [contact])
        XCTAssertEqual(try ann.contacts.nameOf(Person(userId: bobId, displayName: "old")), "My brother")

        let call = try await bob.call([known(ann.userId, "ann"), known(cat.userId, "cat")])
        let (ringing, atCat) = try await (ann.nextRinging(), cat.nextRinging())
        XCTAssertEqual(ringing.caller, contact)
        XCTAssertEqual(atCat.caller, Person(userId: bobId, displayName: "Bob", isContact: true))
        try await ringing.answer()
        try await isShown(ringing, bobId, "My brother")
        XCTAssertFalse("\(call.participants.value)\(atCat.participants.value)".contains("brother"))
        _ = try await ann.contacts.rename(bobId, alias: nil)
        try await isShown(ringing, bobId, "Bob")
        let events = ann.events
        try await bob.account.update(["displayName": "Robert"])
        let told = try await events.first {
            if case .message("contact_changed", _) = $0 { true } else { false }
        }
        guard case .message(_, let members) = told else { return XCTFail("\(told)") }
        XCTAssertEqual(members.text("displayName"), "Robert")
        try await isShown(ringing, bobId, "Robert")
        XCTAssertEqual(ringing.caller.name, "Robert")
        try await call.end()
        for app in [bob, ann, cat] { await app.close() }
    }

    func testACallThatRingsAlreadySaysByWhichNameAndWhoIsAStranger() async throws {
        let (bob, ann) = try await (server.person("Bob"), server.person("Ann"))
        try await befriend(ann, bob)
        let (annId, bobId) = (try known(ann.userId, "ann"), try known(bob.userId, "bob"))
        _ = try await ann.contacts.rename(bobId, alias: "Bobby")
        // The call is all that the next start knows of him: names are read after it.
        try await ann.connection.first { $0 == .connected }
        await ann.close()
        let call = try await bob.call(annId)
        try await ann.resume()
        let caller = try await ann.nextRinging().caller
        XCTAssertEqual(caller, Person(userId: bobId, displayName: "Bob", alias: "Bobby", isContact: true))
        try await call.end()

        try await ann.account.update(["settings": ["callsFromContactsOnly": false]])
        try await ann.contacts.remove(bobId)
        let ofStranger = try await bob.call(annId)
        let callId = ofStranger.callId
        let stranger = try await ann.ringing.first { $0.callId == callId }.caller
        XCTAssertEqual(stranger, Person(userId: bobId, displayName: "Bob", isContact: false))
        try await ofStranger.end()
        for app in [bob, ann] { await app.close() }
    }

    func testNobodyIsAskedBeforeTheUserWantsIt() async throws {
        let http = AlteredHTTP()
        let asked = Locked<[String]>([])
        http.alterations.before = { operation in
            if ["share-token", "friend-request"].contains(where: { operation.utf8.starts(with: $0.utf8) }) {
                asked.with { $0.append(operation) }
            }
        }
        let (ann, bob, cat) = try await (server.person("Ann", http), server.person("Bob"), server.person("Cat"))
        func requests() -> [String] {
            asked.with { asked in
                defer { asked = [] }
                return asked
            }
        }

        let link = try await ann.contacts.open("Add me: \(bob.contacts.shareLink()) thanks!")
        XCTAssertEqual(requests(), ["share-token/resolve"])
        guard case .link(let name, let relation, let isNamed, _) = link else { return XCTFail("\(link)") }
        XCTAssertEqual([name, relation, "\(isNamed)"], ["Bob", "none", "true"])
        var status = try await link.request(message: "It is Ann")
        XCTAssertEqual(status, .pending)
        XCTAssertEqual(requests(), ["friend-request/by-token"])
        var messages = try await bob.contacts.requests().items.map(\.message)
        XCTAssertEqual(messages, ["It is Ann"])

        let catId = try known(cat.userId, "cat")
        let user = try await ann.contacts.open(" \(catId)\n")
        guard case .user(catId, _) = user else { return XCTFail("\(user)") }
        XCTAssertEqual(requests(), [])
        status = try await user.request(message: "It is Ann")
        XCTAssertEqual(status, .pending)
        XCTAssertEqual(requests(), ["friend-request/by-id"])
        messages = try await cat.contacts.requests().items.map(\.message)
        XCTAssertEqual(messages, ["It is Ann"])

        let error = try await failure { _ = try await ann.contacts.open("https://example.org/") }
        XCTAssertEqual(error.code, CallsignError.LocalCode.invalidQR)
        XCTAssertEqual(requests(), [])
        for app in [ann, bob, cat] { await app.close() }
    }
}
