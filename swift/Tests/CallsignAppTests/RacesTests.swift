import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Events that come to a device while a request of its own is under way.
final class RacesTests: ServedTests {
    private let http = AlteredHTTP()

    /// Ann calls Bob, who answers.
    private func inCall(_ ann: Callsign, _ bob: Callsign) async throws -> (anns: Call, bobs: Call) {
        try await befriend(ann, bob)
        let call = try await ann.call(known(bob.userId, "userId"))
        let bobs = try await bob.nextRinging()
        try await bobs.answer()
        try await call.becomes(.active)
        return (call, bobs)
    }

    private func person(_ name: String, by network: BreakableNetwork, _ http: AlteredHTTP) async throws -> Callsign {
        let app = try await server.app(MemoryAppStorage(), http, network)
        try await server.signIn(app, name)
        return app
    }

    private func reconnect(_ app: Callsign, _ network: BreakableNetwork) async throws {
        network.cut()
        try await app.connection.first { $0 == .connecting }
        network.restore()
        try await app.connect()
    }

    func testACallThatIsAnsweredOnTwoDevicesAtOnceGoesOnWithOneOfThem() async throws {
        let address = server.newAddress("Bob")
        let ann = try await server.person("Ann")
        let phone = try await server.app()
        let bobId = try await server.signIn(phone, "Bob", address)
        try await befriend(ann, phone)
        let laptop = try await server.approvedDevice(phone, address, http)
        _ = try await ann.call(bobId)
        let onPhone = try await phone.nextRinging()
        let onLaptop = try await laptop.nextRinging()
        let gate = Gate()
        http.alterations.before = once({ $0.hasSuffix("/join") }, { await gate.pass() })
        let answered = Task { try await onLaptop.answer() }
        await gate.isReached()
        let events = laptop.events
        let told = Task { try await events.first { if case .message("call_answered_elsewhere", _) = $0 { true } else { false } } }
        try await onPhone.answer()
        _ = try await told.value
        let moved = Task { try await onPhone.ended() }
        gate.open()
        try await answered.value
        let ending = try await moved.value
        XCTAssertEqual(ending, .moved)
        XCTAssertEqual(onLaptop.state.value, .active)
        for app in [ann, phone, laptop] { await app.close() }
    }

    func testACallThatIsRestoredWhileTheConnectionComesBackIsRestoredOnce() async throws {
        let network = BreakableNetwork(server)
        let ann = try await server.person("Ann")
        let storage = MemoryAppStorage()
        let bob = try await server.app(storage, http, network)
        try await server.signIn(bob, "Bob")
        let call = try await inCall(ann, bob).anns
        await bob.close()
        let reads = [Gate(), Gate()]
        let left = Locked(reads)
        let path = "call/\(call.callId)"
        http.alterations.after = { operation in
            guard operation == path, let gate = left.with({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
            await gate.pass()
        }
        let again = try await server.app(storage, http, network)
        let resumed = Locked<[String]>([])
        let events = again.events
        let hearing = Task {
            for await event in events {
                if case .resumed(let call) = event { resumed.with { $0.append(call.callId) } }
            }
        }
        try await again.resume()
        await reads[0].isReached()
        try await reconnect(again, network)
        await reads[1].isReached()
        for read in reads { read.open() }
        // Whichever of both answers comes first.
        let restored = try known(await again.calls.first { !$0.isEmpty }.first, "call")
        try await restored.becomes(.active)
        try await haveOneKey(call, restored)
        while resumed.with({ $0.isEmpty }) { await Task.yield() }
        XCTAssertEqual(resumed.with { $0 }, [call.callId])
        XCTAssertEqual(again.calls.value.map(\.callId), [call.callId])
        hearing.cancel()
        for app in [ann, again] { await app.close() }
    }

    func testTwoPeopleWhoCallEachOtherAtOnceAreInOneCall() async throws {
        let (ann, bob) = (try await server.person("Ann"), try await server.person("Bob"))
        try await befriend(ann, bob)
        let (annId, bobId) = (try known(ann.userId, "userId"), try known(bob.userId, "userId"))
        async let first = ann.call(bobId)
        async let second = bob.call(annId)
        let (anns, bobs) = try await (first, second)
        XCTAssertEqual(anns.callId, bobs.callId)
        for call in [anns, bobs] { try await call.becomes(.active) }
        try await haveOneKey(anns, bobs)
        for app in [ann, bob] { await app.close() }
    }

    func testADeviceThatAsksForTheKeyWhileTheCallGoesOnGetsItFromTheHost() async throws {
        let (ann, bob) = (try await server.person("Ann"), try await server.person("Bob", http))
        let (call, bobs) = try await inCall(ann, bob)
        let asked = Signal()
        http.alterations.before = { if $0.hasSuffix("/rejoin") { asked.give() } }
        try await bobs.askForKey()
        await asked.given()
        XCTAssertEqual(bobs.state.value, .active)
        try await haveOneKey(call, bobs)
        for app in [ann, bob] { await app.close() }
    }

    func testACallThatRingsDoesSoAgainInAnAppThatComesBack() async throws {
        let storage = MemoryAppStorage()
        let ann = try await server.person("Ann")
        let bob = try await server.person("Bob", URLSessionHTTP(), storage)
        try await befriend(ann, bob)
        let call = try await ann.call(known(bob.userId, "userId"))
        let first = try await bob.nextRinging()
        let other = try await server.app(storage)
        try await other.resume()
        let ending = try await first.ended()
        XCTAssertEqual(ending, .moved)
        let rungThere = try await other.nextRinging()
        try await bob.connect()
        try await bob.nextRinging().answer()
        try await call.becomes(.active)
        let after = try await rungThere.ended()
        XCTAssertEqual(after, .moved)
        for app in [ann, bob, other] { await app.close() }
    }

    func testASlowAnswerTakesBackNoChangeOfTheProfile() async throws {
        let address = server.newAddress("Ann")
        let gate = Gate()
        http.alterations.after = once({ $0 == "user" }, { await gate.pass() })
        let ann = try await server.app(MemoryAppStorage(), http)
        try await server.signIn(ann, "Ann", address)
        await gate.isReached()
        let laptop = try await server.approvedDevice(ann, address)
        let events = ann.events
        try await laptop.request("PUT", "user", body: ["displayName": "Anna"])
        try await events.first { if case .message("profile_changed", _) = $0 { true } else { false } }
        XCTAssertEqual(ann.user.value?.displayName, "Anna")
        let more = ann.events
        gate.open()
        try await more.first { if case .ready = $0 { true } else { false } }
        XCTAssertEqual(ann.user.value?.displayName, "Anna")
        for app in [ann, laptop] { await app.close() }
    }

    /// A read of what begins so waits, with the text that it has found, while it is held.
    private final class HeldStorage: AppStorage {
        private let kept = MemoryAppStorage()
        private let prefix: String
        let held = Locked<Gate?>(nil)

        init(_ prefix: String) { self.prefix = prefix }

        func get(_ key: String) async throws -> String? {
            let text = try await kept.get(key)
            if key.hasPrefix(prefix) { await held.with { $0 }?.pass() }
            return text
        }

        func put(_ key: String, _ text: String?) async throws { try await kept.put(key, text) }
    }

    func testAnAppThatIsClosedWhileItStartsStaysClosed() async throws {
        let storage = HeldStorage("")
        await (try server.person("Ann", URLSessionHTTP(), storage)).close()
        let gate = Gate()
        storage.held.with { $0 = gate }
        let again = try await server.app(storage)
        let resumed = Task { try await again.resume() }
        await gate.isReached()
        let closed = Task { await again.close() }
        gate.open()
        _ = try await resumed.value
        await closed.value
        await again.close()
        XCTAssertNil(again.userId)
        XCTAssertEqual(again.connection.value, .off)
    }

    func testAPersonWhoSignsOutIsNotToldSoByTheServerWhichClosesTheConnectionFirst() async throws {
        let ann = try await server.person("Ann", http)
        try await ann.connection.first { $0 == .connected }
        http.alterations.after = once({ $0 == "logout" }, { try await ann.connection.first { $0 != .connected } })
        let told = Locked(0)
        let events = ann.events
        let collecting = Task {
            for await event in events {
                if case .signedOut = event { told.with { $0 += 1 } }
            }
        }
        try await ann.signOut()
        XCTAssertEqual(told.with { $0 }, 0)
        XCTAssertNil(ann.userId)
        collecting.cancel()
        await ann.close()
    }

    func testACallThatIsLeftWhileItsAppConnectsIsNotResumed() async throws {
        let network = BreakableNetwork(server)
        let storage = HeldStorage("call.")
        let ann = try await server.person("Ann")
        let bob = try await server.app(storage, http, network)
        try await server.signIn(bob, "Bob")
        let bobs = try await inCall(ann, bob).bobs
        let read = Gate()
        storage.held.with { $0 = read }
        try await reconnect(bob, network)
        await read.isReached()
        storage.held.with { $0 = nil }
        let events = bob.events
        let leave = Gate()
        http.alterations.before = once({ $0.hasSuffix("/leave") }, { await leave.pass() })
        let left = Task { try await bobs.leave() }
        await leave.isReached()
        read.open()
        try await events.first { if case .ready = $0 { true } else { false } }
        XCTAssertTrue(bob.calls.value.isEmpty)
        leave.open()
        try await left.value
        for app in [ann, bob] { await app.close() }
    }

    func testWhatACallHasStillToSendIsNotSentAsAnotherUser() async throws {
        let ann = try await server.person("Ann", http)
        let bob = try await server.person("Bob")
        try await befriend(ann, bob)
        let bobId = try known(bob.userId, "userId")
        let gate = Gate()
        http.alterations.after = once({ $0 == "call/start" }, { await gate.pass() })
        let start = Task { try await ann.call(bobId) }
        await gate.isReached()
        try await ann.signOut()
        try await server.signIn(ann, "Cat")
        let sent = Locked<[String]>([])
        http.alterations.before = { operation in sent.with { $0.append(operation) } }
        gate.open()
        let call = try await start.value
        XCTAssertEqual(call.ending, .left)
        // Whatever the call has to send is sent, or refused, before a later request of this user.
        try await ann.request("GET", "friend")
        XCTAssertEqual(sent.with { $0 }.filter { $0.hasSuffix("/end") || $0.hasSuffix("/leave") }, [])
        for app in [ann, bob] { await app.close() }
    }

    func testASessionThatEndsWhileTheAppStartsLeavesNothingOfIt() async throws {
        let address = server.newAddress("Ann")
        let storage = HeldStorage("call.")
        let first = try await server.app(storage)
        try await server.signIn(first, "Ann", address)
        let other = try await server.approvedDevice(first, address)
        await first.close()
        let read = Gate()
        storage.held.with { $0 = read }
        let again = try await server.app(storage)
        let events = again.events
        try await other.signOut(allDevices: true)
        let resumed = Task { try await again.resume() }
        await read.isReached()
        while try await storage.get("session")?.contains("accessToken") == true {
            try await Task.sleep(nanoseconds: 10_000_000)
        }
        read.open()
        _ = try? await resumed.value
        try await events.first { if case .signedOut = $0 { true } else { false } }
        XCTAssertNil(again.userId)
        for app in [other, again] { await app.close() }
    }
}
