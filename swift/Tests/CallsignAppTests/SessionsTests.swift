import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Sessions of one user, and those that may do little, on the built server.
final class SessionsTests: ServedTests {
    private func person(_ address: String) async throws -> Callsign {
        let app = try await server.app()
        try await server.signIn(app, "Ann", address)
        return app
    }

    /// The members of the next `session_started`, from now on.
    private func started(_ app: Callsign) -> Task<[String: JSONValue], any Error> {
        let events = app.events
        return Task {
            for await case .message("session_started", let members) in events { return members }
            throw Absent(name: "session_started")
        }
    }

    private func ended(_ app: Callsign) -> Task<CallsignError, any Error> {
        let events = app.events
        return Task {
            for await case .signedOut(let error) in events { return error }
            throw Absent(name: "signedOut")
        }
    }

    func testAnOwnerHearsOfASessionThatBeginsSeesItAndEndsIt() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        try await owner.connection.first { $0 == .connected }
        let told = started(owner)
        let thief = try await person(address)
        let over = ended(thief)
        let list = try await owner.sessions.list()
        XCTAssertEqual(list.count, 2)
        let (newest, own) = (list[0], list[1])
        let sessionId = try await told.value.text("sessionId")
        XCTAssertEqual(sessionId, newest.id)
        XCTAssertEqual(list.map(\.isCurrent), [false, true])
        XCTAssertEqual(list.map { $0.device?.deviceId }, [thief.deviceId, owner.deviceId])
        XCTAssertTrue(newest.createdAtMs <= newest.lastUsedAtMs && newest.lastUsedAtMs < newest.endsAtMs)
        XCTAssertEqual(newest.proof, "otp")
        try await owner.sessions.end(newest.id)
        _ = try await over.value
        try await thief.user.first { $0 == nil }
        let left = try await owner.sessions.list().map(\.id)
        XCTAssertEqual(left, [own.id])
        let again = await codeOf { try await owner.sessions.end(newest.id) }
        XCTAssertEqual(again, "SESSION_NOT_FOUND")
        await owner.close()
        await thief.close()
    }

    func testAllSessionsButOnesOwnAreEndedAtOnce() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let others = [try await person(address), try await person(address)]
        let before = try await owner.sessions.list().count
        XCTAssertEqual(before, 3)
        try await owner.sessions.endOthers()
        let left = try await owner.sessions.list().map(\.isCurrent)
        XCTAssertEqual(left, [true])
        for other in others {
            try await other.user.first { $0 == nil }
            await other.close()
        }
        await owner.close()
    }

    func testAnAppHearsOfTheSignInsOfOthersAndNotOfItsOwn() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let told = started(owner)
        try await owner.signOut()
        try await server.signIn(owner, "Ann", address)
        try await owner.connection.first { $0 == .connected }
        let other = try await person(address)
        let newest = try known(await owner.sessions.list().first, "session")
        XCTAssertFalse(newest.isCurrent)
        let sessionId = try await told.value.text("sessionId")
        XCTAssertEqual(newest.id, sessionId)
        await owner.close()
        await other.close()
    }

    func testADeviceThatWaitsForItsPlaceOnTheListMayDoLittleFailsAtNothingAndIsReadyOnceItIsOnIt() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let second = try await server.app()
        let events = second.events
        let failures = Task {
            var failures: [CallsignError] = []
            for await event in events {
                if case .ready = event { break }
                if case .failed(let error) = event { failures.append(error) }
            }
            return failures
        }
        try await server.signIn(second, "Ann", address)
        try await second.devices.listState.first { if case .waiting = $0 { true } else { false } }
        XCTAssertEqual(second.restriction, "DEVICE_NOT_LISTED")
        let contacts = await codeOf { _ = try await second.contacts.list() }
        let ending = await codeOf { try await second.sessions.endOthers() }
        XCTAssertEqual([contacts, ending], ["DEVICE_NOT_LISTED", "DEVICE_NOT_LISTED"])
        let seen = try await second.sessions.list().map(\.isCurrent)
        XCTAssertEqual(seen, [true])
        try await owner.devices.approve(owner.nextWaiting())
        let failed = await failures.value
        XCTAssertEqual(failed.map(\.code), [])
        XCTAssertNil(second.restriction)
        XCTAssertEqual(second.user.value?.email, address)
        let items = try await second.contacts.list().items
        XCTAssertEqual(items, [])
        await owner.close()
        await second.close()
    }
}
