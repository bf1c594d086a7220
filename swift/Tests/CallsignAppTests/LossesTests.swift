import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Callers that give up, a network and a storage that fail, and calls that are left meanwhile.
final class LossesTests: ServedTests {
    private struct Lost: Error {}

    private let http = AlteredHTTP()

    func testAnOperationGoesOnToItsEndWhereItsCallerIsCancelled() async throws {
        let ann = try await server.person("Ann", http)
        let bob = try await server.person("Bob")
        try await befriend(ann, bob)
        let bobId = try known(bob.userId, "userId")
        let gate = Gate()
        http.alterations.before = once({ $0 == "call/start" }, { await gate.pass() })
        let caller = Task { try await ann.call(bobId) }
        await gate.isReached()
        caller.cancel()
        gate.open()
        let ringing = try await bob.nextRinging()
        try await ringing.answer()
        let call = try known(await ann.calls.first { !$0.isEmpty }.first, "call")
        try await call.becomes(.active)
        XCTAssertEqual(call.fingerprint, ringing.fingerprint)
        let leaving = Task { try await call.leave() }
        leaving.cancel()
        try await call.becomes(.ended)
        let annId = ann.userId
        try await ringing.participants.first { all in all.contains { $0.userId == annId && $0.state == .left } }
        for app in [ann, bob] { await app.close() }
    }

    func testACallThatIsJoinedAgainBeforeItsTopicIsThereIsWatchedOnce() async throws {
        let network = BreakableNetwork(server)
        let ann = try await server.person("Ann")
        let bob = try await server.app(MemoryAppStorage(), http, network)
        let bobId = try await server.signIn(bob, "Bob")
        let cat = try await server.person("Cat")
        for friend in [bob, cat] { try await befriend(ann, friend) }
        let catId = try known(cat.userId, "userId")
        let call = try await ann.call([bobId, catId])
        let cats = try await cat.nextRinging()
        try await cats.answer()
        let first = try await bob.nextRinging()
        network.cut()
        try await bob.connection.first { $0 == .connecting }
        try await first.answer()
        try await first.leave()
        let again = try await bob.join(call.callId)
        network.restore()
        try await bob.connect()
        try await again.becomes(.active)
        let events = again.events
        try await cats.leave()
        try await call.participants.first { all in all.contains { $0.state == .left } }
        try await call.end()
        var told = 0
        for await case .participantChanged(let participant) in events where participant.userId == catId {
            if participant.state == .left { told += 1 }
        }
        XCTAssertEqual(told, 1)
        for app in [ann, bob, cat] { await app.close() }
    }

    func testAnAppThatIsClosedOnADeadNetworkSaysOnceThatItLeavesACall() async throws {
        let ann = try await server.person("Ann")
        let bob = try await server.person("Bob", http)
        try await befriend(ann, bob)
        _ = try await ann.call(known(bob.userId, "userId"))
        let bobs = try await bob.nextRinging()
        try await bobs.answer()
        let attempts = Locked(0)
        let begun = Signal()
        http.alterations.before = { operation in
            guard operation.hasSuffix("/leave") else { return }
            attempts.with { $0 += 1 }
            begun.give()
            throw Lost()
        }
        let left = Task { try await bobs.leave() }
        await begun.given()
        await bob.close()
        try await left.value
        let count = attempts.with { $0 }
        try await bob.request("GET", "friend")
        XCTAssertEqual(attempts.with { $0 }, count)
        await ann.close()
    }

    /// Fails while it is down.
    private final class FailingStorage: AppStorage {
        private let kept = MemoryAppStorage()
        let isDown = Locked(false)

        func get(_ key: String) async throws -> String? {
            if isDown.with({ $0 }) { throw Lost() }
            return try await kept.get(key)
        }

        func put(_ key: String, _ text: String?) async throws {
            if isDown.with({ $0 }) { throw Lost() }
            try await kept.put(key, text)
        }
    }

    func testAStorageThatFailsFailsTheCommandThatNeedsIt() async throws {
        let storage = FailingStorage()
        let ann = try await server.person("Ann", URLSessionHTTP(), storage)
        let bob = try await server.person("Bob")
        try await befriend(ann, bob)
        let bobId = try known(bob.userId, "userId")
        storage.isDown.with { $0 = true }
        let error = try await failure { _ = try await ann.call(bobId) }
        storage.isDown.with { $0 = false }
        XCTAssertEqual(error.code, "STORAGE_FAILED")
        try await ann.call(bobId).end()
        for app in [ann, bob] { await app.close() }
    }

    func testANameThatThisUserGivesAContactIsShownInCallsAtOnce() async throws {
        let ann = try await server.person("Ann")
        let bob = try await server.person("Bob")
        try await befriend(ann, bob)
        let bobId = try known(bob.userId, "userId")
        let call = try await ann.call(bobId)
        XCTAssertEqual(call.participants.value.first { $0.userId == bobId }?.name, "Bob")
        let contact = try await ann.contacts.rename(bobId, alias: "Bobby")
        XCTAssertEqual(contact.person.name, "Bobby")
        XCTAssertEqual(call.participants.value.first { $0.userId == bobId }?.name, "Bobby")
        let listed = try await ann.contacts.list()
        XCTAssertEqual(listed.items.map(\.person.name), ["Bobby"])
        let ringing = try await bob.nextRinging()
        XCTAssertEqual(ringing.caller.name, "Ann")
        XCTAssertEqual(ringing.caller.isContact, true)
        try await call.end()
        for app in [ann, bob] { await app.close() }
    }

    private struct Held: Sendable {
        weak var app: Callsign?
        weak var call: Call?
    }

    func testAnAppThatIsClosedIsLetGoWithItsCalls() async throws {
        let bob = try await server.person("Bob")
        let held = Locked(Held())
        func run() async throws {
            let ann = try await server.person("Ann")
            try await befriend(ann, bob)
            let call = try await ann.call(known(bob.userId, "userId"))
            try await bob.nextRinging().answer()
            try await call.becomes(.active)
            held.with { $0 = Held(app: ann, call: call) }
            await ann.close()
        }
        try await run()
        while held.with({ $0.app != nil || $0.call != nil }) { await Task.yield() }
        await bob.close()
    }
}
