import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Users of a backend that signs them in by tokens, and suspends them; on the built server.
final class SignInTokenTests: ServedTests {
    override class var settings: [String: String] { ["CALLSIGN_SIGN_IN_WAIT_HOURS": "72"] }

    private func token(_ name: String) async throws -> String {
        _ = try await backend("PUT", "users/ext:\(name)", ["displayName": .string(name)])
        return try await backend("POST", "users/ext:\(name)/sign-in-token", [:]).text("token")
    }

    private func person(_ name: String) async throws -> Callsign {
        let app = try await server.app()
        try await app.signInByToken(token(name))
        return app
    }

    func testATokenSignsInOnceAndThisDeviceAgainAtOnce() async throws {
        let ann = try await server.app()
        let first = try await token("ann")
        let userId = try await ann.signInByToken(first).userId
        let again = try await ann.signInByToken(first).userId
        XCTAssertEqual(userId, again)
        let second = try await token("ann")
        let refused = await codeOf { try await ann.signInByToken(second) }
        XCTAssertEqual(refused, "ALREADY_SIGNED_IN")
        let other = try await server.app()
        let spent = await codeOf { try await other.signInByToken(first) }
        XCTAssertEqual(spent, "SIGN_IN_TOKEN_INVALID")
        let deviceId = ann.deviceId
        try await ann.signOut()
        try await ann.signInByToken(token("ann"))
        XCTAssertEqual(ann.userId, userId)
        XCTAssertEqual(ann.deviceId, deviceId)
        XCTAssertNil(ann.restriction)
        await ann.close()
        await other.close()
    }

    func testAnotherDeviceWaitsForTheFirstOne() async throws {
        let owner = try await person("bob")
        let second = try await server.app()
        let spare = try await token("bob")
        let refused = await codeOf { try await second.signInByToken(spare) }
        XCTAssertEqual(refused, "SIGN_IN_WAITING")
        let all = try await owner.sessions.waiting()
        XCTAssertEqual(all.map(\.method), ["server"])
        let address = try await second.waitingSignIn()?.address
        XCTAssertEqual(address, "")
        try await owner.sessions.answer(all[0].id, approve: true)
        let userId = try await second.finishSignIn().userId
        XCTAssertEqual(userId, owner.userId)
        let waiting = try await second.waitingSignIn()
        XCTAssertNil(waiting)
        await owner.close()
        await second.close()
    }

    func testACallEndsWithItsUsersSuspensionWhoIsSignedOutAndCannotComeBack() async throws {
        let cat = try await person("cat")
        let dan = try await person("dan")
        _ = try await backend("PUT", "contacts", ["a": "ext:cat", "b": "ext:dan"])
        let ringing = dan.ringing
        let call = try await cat.call(known(dan.userId, "userId"))
        let rung = try await ringing.first { _ in true }
        try await rung.answer()
        try await call.becomes(.active)
        let (danEvents, catEvents, appEvents) = (rung.events, call.events, dan.events)
        _ = try await backend("POST", "users/ext:dan/suspend", ["reason": "abuse"])
        let endings = [try await ending(danEvents), try await ending(catEvents)]
        XCTAssertEqual(endings, [.suspended, .hangup])
        for await case .signedOut(let error) in appEvents {
            XCTAssertEqual(error.code, "SESSION_REVOKED")
            break
        }
        XCTAssertNil(dan.userId)
        await cat.close()
        await dan.close()
    }

    private func ending(_ events: AsyncStream<CallEvent>) async throws -> CallEnding {
        for await case .ended(let ending) in events { return ending }
        throw Absent(name: "ended")
    }
}
