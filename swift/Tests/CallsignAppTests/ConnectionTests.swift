import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Connections to the built server.
final class ConnectionTests: ServerTestCase {
    /// Ann's device, which is registered, as one run of her app.
    @CallsignActor final class Run: ConnectionListener {
        nonisolated let states = Watched(ConnectionState.off)
        nonisolated let connections = Watched(0)

        /// Each state, and how many attempts had failed.
        nonisolated let told = Locked<[String]>([])
        nonisolated let troubles = Locked<[String]>([])
        private let onRequest: @Sendable (Run, [String: JSONValue]) async throws -> Void
        private var connection: Connection?

        init(
            _ server: Server,
            _ session: Session,
            _ onRequest: @escaping @Sendable (Run, [String: JSONValue]) async throws -> Void
        ) {
            self.onRequest = onRequest
            connection = Connection(server, session, self)
        }

        func onState(_ state: ConnectionState, failures: Int) {
            told.with { $0.append("\(state) \(failures)") }
            states.set(state)
        }

        func onConnected() async throws { connections.set(connections.value + 1) }

        func onEvent(_ event: [String: JSONValue]) async throws {
            if event.text("type") == "friend_request" { try await onRequest(self, event) }
        }

        func onDeviceMissing() async throws { throw CallsignError("TEST", "The device is registered.") }

        func onTrouble(_ error: any Error) { troubles.with { $0.append("\(error)") } }

        func connect() { connection?.connect() }

        func watch(_ destination: String) async throws { _ = try await connection?.watch(destination) { _ in } }

        func send(_ destination: String, _ body: [String: JSONValue] = [:]) async throws {
            try await connection?.send(destination, body)
        }

        /// What was acknowledged is on the server's disk then.
        func disconnect() async throws { try await connection?.disconnect() }

        /// As if the app were killed: nothing more is acknowledged.
        func kill() {
            connection?.abort()
            connection = nil
        }
    }

    private let storage = MemoryAppStorage()

    private func appRun(
        _ address: String,
        through network: BreakableNetwork? = nil,
        _ onRequest: @escaping @Sendable (Run, [String: JSONValue]) async throws -> Void = { _, _ in }
    ) async throws -> Run {
        let server = try network.map { try self.server.seen($0, $0) } ?? self.server.seen()
        let session = try await Session.open(server, storage)
        if await session.userId == nil { try await signIn(session, address, "Ann", storage, server) }
        return await Run(server, session, onRequest)
    }

    private func signIn(
        _ session: Session, _ address: String, _ name: String, _ storage: MemoryAppStorage, _ server: Server
    ) async throws {
        let sent = try await session.requestCode(email: address, displayName: name)
        _ = try await session.verifyCode(sent.challengeId, sentCode(server.prefix, address))
        _ = try await DeviceRegistration(server, session, storage, softwareKeys(storage)).register()
    }

    /// Somebody of this name asks Ann to be a contact.
    private func ask(_ name: String) async throws {
        let server = try self.server.seen()
        let annId = try await Session.open(server, storage).userId
        let storage = MemoryAppStorage()
        let session = try await Session.open(server, storage)
        try await signIn(session, self.server.newAddress(name), name, storage, server)
        let ann = try known(annId, "Ann")
        try await session.request("POST", "friend-request/by-id", body: ["targetUserId": .string("\(ann)")])
    }

    func testAMessageWhoseAcknowledgementWasLostWithTheNetworkIsHandledOnce() async throws {
        let network = BreakableNetwork(server)
        let handled = Locked<[String]>([])
        let last = Signal()
        let ann = try await appRun(server.newAddress("ann"), through: network) { run, event in
            let name = try event.needText("displayName")
            handled.with { $0.append(name) }
            if name == "Cat" { last.give() }
            if name != "Bob" { return }
            network.cut()
            await first(run.states.values) { $0 == .connecting }
            network.restore()
        }
        await ann.connect()
        try await ask("Bob")
        await first(ann.connections.values) { $0 == 2 }
        try await ask("Cat")
        await last.given()
        XCTAssertEqual(handled.with { $0 }, ["Bob", "Cat"])
        XCTAssertEqual(ann.troubles.with { $0 }, [])
        await ann.kill()
    }

    func testAMessageComesAgainToTheNextRunOfAnAppThatDiedBeforeItWasHandledAndNotAfter() async throws {
        let address = server.newAddress("ann")
        let begun = Signal()
        let first = try await appRun(address) { _, _ in
            begun.give()
            try await Task.sleep(nanoseconds: 3_600_000_000_000)
        }
        await first.connect()
        try await ask("Bob")
        await begun.given()
        await first.kill()

        let names = Watched<[String]>([])
        let hear: @Sendable (Run, [String: JSONValue]) async throws -> Void = { _, event in
            names.set(names.value + [try event.needText("displayName")])
        }
        let second = try await appRun(address, hear)
        await second.connect()
        await CallsignAppTests.first(names.values) { $0.count == 1 }
        try await ask("Cat")
        await CallsignAppTests.first(names.values) { $0.count == 2 }
        try await second.disconnect()

        let third = try await appRun(address, hear)
        await third.connect()
        try await ask("Dan")
        await CallsignAppTests.first(names.values) { $0.count == 3 }
        XCTAssertEqual(names.value, ["Bob", "Cat", "Dan"])
        await third.kill()
    }

    func testANewerConnectionOfTheDeviceTakesOverAndTheOlderOneStaysAway() async throws {
        let address = server.newAddress("ann")
        let one = try await appRun(address)
        await one.connect()
        await first(one.connections.values) { $0 == 1 }
        let other = try await appRun(address)
        await other.connect()
        await first(one.states.values) { $0 == .elsewhere }
        await first(other.connections.values) { $0 == 1 }
        XCTAssertEqual(other.states.value, .connected)
        await one.connect()
        await first(other.states.values) { $0 == .elsewhere }
        await one.kill()
        await other.kill()
    }

    func testATokenThatTheServerCallsExpiredIsRenewed() async throws {
        let address = server.newAddress("ann")
        try await appRun(address).kill()
        let before = try await storage.get("session")
        try restart(clockAheadMs: 7_200_000)
        let ann = try await appRun(address)
        await ann.connect()
        await first(ann.connections.values) { $0 == 1 }
        XCTAssertEqual(ann.told.with { $0 }, ["connecting 0", "connecting 1", "connected 1"])
        let after = try await storage.get("session")
        XCTAssertNotEqual(before, after)
        await ann.kill()
        try restart(clockAheadMs: 0)
    }

    func testARefusalOfTheServerComesToTheOneWhoAsked() async throws {
        let ann = try await appRun(server.newAddress("ann"))
        await ann.connect()
        await first(ann.connections.values) { $0 == 1 }
        let refused = await refusal { try await ann.watch("/topic/call.no-such-call") }
        XCTAssertNotNil(refused)
        XCTAssertFalse(["OFFLINE", "INTERNAL", "NOT_OF_CALLSIGN"].contains(refused?.code))
        let tooLarge = await codeOf { try await ann.send("/app/x", ["x": .string(String(repeating: "x", count: 300_000))]) }
        XCTAssertEqual(tooLarge, "BODY_TOO_LARGE")
        try await ann.send("/user/queue/dev.x")
        try await ann.disconnect()
        let offline = await codeOf { try await ann.send("/user/queue/dev.x") }
        XCTAssertEqual(offline, "OFFLINE")
        await ann.kill()
    }
}

/// Returns when a value is the one that is meant.
func first<Value>(_ values: AsyncStream<Value>, _ isOne: (Value) -> Bool) async {
    for await value in values where isOne(value) { return }
}

/// Connections of whole apps.
final class AppConnectionTests: ServedTests {
    func testAnAppThatIsClosedWhileItSignsInDoesNotConnectAndKeepsTheSession() async throws {
        let ann = try await server.app()
        let (address, url) = (server.newAddress("ann"), server.url)
        let user = try await ann.signIn(address, displayName: "Ann") { _ in
            await ann.close()
            return try await sentCode(url, address)
        }
        XCTAssertEqual(ann.connection.value, .off)
        let userId = try await ann.resume()
        XCTAssertEqual(userId, user.userId)
        try await ann.connection.first { $0 == .connected }
        await ann.close()
    }

    func testACallWhoseInvitationFellOutOfAFullInboxRingsAfterTheNextConnection() async throws {
        let network = BreakableNetwork(server)
        let storage = MemoryAppStorage()
        let ann = try await server.app(storage, by: network)
        let annId = try await server.signIn(ann, "Ann")
        let bob = try await server.app()
        try await server.signIn(bob, "Bob")
        try await befriend(bob, ann)
        network.cut()
        try await ann.connection.first { $0 == .connecting }
        let call = try await bob.call(annId)
        let seen = try server.seen()
        let filling = await ConnectionTests.Run(seen, try Session.open(seen, storage)) { _, _ in
            try await Task.sleep(nanoseconds: 3_600_000_000_000)
        }
        await filling.connect()
        await first(filling.connections.values) { $0 == 1 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            // As many as an inbox holds.
            for _ in 0..<500 { group.addTask { try await filling.send("/user/queue/dev.x") } }
            try await group.waitForAll()
        }
        await filling.kill()
        network.restore()
        try await ann.connect()
        let rings = try await ann.nextRinging()
        XCTAssertEqual(call.callId, rings.callId)
        await ann.close()
        await bob.close()
    }
}
