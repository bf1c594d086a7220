import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Sign-ins that wait for the owner's answer, on the built server.
final class WaitingSignInTests: ServedTests {
    override class var settings: [String: String] { ["CALLSIGN_SIGN_IN_WAIT_HOURS": "72"] }

    private func person(_ address: String) async throws -> Callsign {
        let app = try await server.app()
        try await server.signIn(app, "Ann", address)
        return app
    }

    private func enter(_ app: Callsign, _ address: String, written: String? = nil) async throws {
        let url = server.url
        let refused = await refusal {
            try await app.signIn(written ?? address) { _ in try await sentCode(url, address) }
        }
        XCTAssertEqual(refused?.code, "SIGN_IN_WAITING")
        let waiting = try await app.waitingSignIn()
        XCTAssertEqual(refused?.members.text("signInCode"), waiting?.signInCode)
    }

    private func answer(_ owner: Callsign, approve: Bool) async throws {
        let waiting = try await owner.sessions.waiting()
        XCTAssertEqual(waiting.count, 1)
        try await owner.sessions.answer(waiting[0].id, approve: approve)
    }

    /// An app whose first ask about its sign-in is held up.
    private func held(_ gate: Gate) async throws -> Callsign {
        let http = AlteredHTTP()
        http.alterations.after = once({ $0 == "login/waiting" }) { await gate.pass() }
        return try await server.app(MemoryAppStorage(), http)
    }

    func testASignInWaitsOutlivesARestartAndIsInOnceAnotherDeviceApprovesIt() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let events = owner.events
        let storage = MemoryAppStorage()
        let second = try await server.app(storage)
        try await enter(second, address)
        let waiting = try await second.waitingSignIn()
        await second.close()
        let all = try await owner.sessions.waiting()
        XCTAssertEqual(all.count, 1)
        let shown = all[0]
        XCTAssertEqual(waiting, WaitingSignIn(address: address, signInCode: shown.signInCode, untilMs: shown.untilMs))
        for await case .message("sign_in_waiting", let members) in events {
            XCTAssertEqual(members.text("signInCode"), shown.signInCode)
            break
        }

        let again = try await server.app(storage)
        let resumed = try await again.resume()
        XCTAssertNil(resumed)
        let still = try await again.waitingSignIn()
        XCTAssertEqual(still, waiting)
        async let one = again.finishSignIn()
        async let other = again.finishSignIn()
        try await owner.sessions.answer(shown.id, approve: true)
        let users = [try await one, try await other]
        XCTAssertEqual(users.map(\.userId), [owner.userId, owner.userId])
        XCTAssertEqual(again.userId, owner.userId)
        let after = try await again.waitingSignIn()
        XCTAssertNil(after)
        let left = try await owner.sessions.waiting()
        XCTAssertEqual(left, [])
        let late = await codeOf { try await owner.sessions.answer(shown.id, approve: true) }
        let gone = await codeOf { try await again.finishSignIn() }
        XCTAssertEqual([late, gone], ["SIGN_IN_NOT_FOUND", "SIGN_IN_GONE"])
        await owner.close()
        await again.close()
    }

    func testASignInThatTheOwnerRefusesIsToldSoAndWaitsNoMore() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let thief = try await server.app()
        try await enter(thief, address)
        try await answer(owner, approve: false)
        let refused = await refusal { try await thief.finishSignIn() }
        XCTAssertEqual(refused?.code, "SIGN_IN_REFUSED")
        XCTAssertGreaterThan(try known(refused, "refusal").members.needTimeMs("until"), systemTimeMs())
        let waiting = try await thief.waitingSignIn()
        XCTAssertNil(waiting)
        XCTAssertNil(thief.userId)
        let gone = await codeOf { try await thief.finishSignIn() }
        XCTAssertEqual(gone, "SIGN_IN_GONE")
        await owner.close()
        await thief.close()
    }

    func testTheSameAppThatEntersAnotherCodeGoesOnWaitingAndAnotherAddressWaitsAnew() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let second = try await server.app()
        try await enter(second, address)
        let waiting = try await second.waitingSignIn()?.signInCode
        try await enter(second, address, written: " \(address.uppercased())")
        let again = try await second.waitingSignIn()?.signInCode
        let shown = try await owner.sessions.waiting().map(\.signInCode)
        XCTAssertEqual(again, waiting)
        XCTAssertEqual(shown, [waiting])
        let other = server.newAddress("bob")
        let bob = try await person(other)
        try await enter(second, other)
        let bobs = try await bob.sessions.waiting().map(\.signInCode)
        let newest = try await second.waitingSignIn()?.signInCode
        XCTAssertEqual(bobs, [newest])
        for app in [owner, second, bob] { await app.close() }
    }

    func testADeviceOfTheListThatHasSignedOutIsInAtOnceAndSoIsItsAppWithAnotherUsersKeys() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let deviceId = owner.deviceId
        try await owner.signOut()
        try await server.signIn(owner, "Ann", address)
        XCTAssertEqual(owner.deviceId, deviceId)
        XCTAssertNil(owner.restriction)
        let items = try await owner.contacts.list().items
        XCTAssertEqual(items, [])
        try await owner.signOut()
        try await server.signIn(owner, "Bob")
        try await owner.signOut()
        try await enter(owner, address)
        await owner.close()
    }

    func testAnAppThatIsClosedWaitsNoLongerAndItsSignInDoes() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let asked = Gate()
        let second = try await held(asked)
        try await enter(second, address)
        async let finishing = codeOf { try await second.finishSignIn() }
        await asked.isReached()
        await second.close()
        let code = await finishing
        XCTAssertEqual(code, "SIGNED_OUT")
        asked.open()
        let waiting = try await second.waitingSignIn()?.address
        XCTAssertEqual(waiting, address)
        await owner.close()
    }

    func testASignInByAnotherAddressWhileOneWaitsIsTheOneThatCounts() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let asked = Gate()
        let second = try await held(asked)
        try await enter(second, address)
        async let finishing = codeOf { try await second.finishSignIn() }
        await asked.isReached()
        let server = server
        async let bob = server.signIn(second, "Bob")
        asked.open()
        let bobsId = try await bob
        try await answer(owner, approve: true)
        let code = await finishing
        XCTAssertEqual(code, "SIGN_IN_GONE")
        XCTAssertEqual(second.userId, bobsId)
        await owner.close()
        await second.close()
    }

    func testOfASignInThatHasWaitedAndAnotherOneAtTheSameTimeTheFirstOneCounts() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let asked = Gate()
        let second = try await held(asked)
        try await enter(second, address)
        try await answer(owner, approve: true)
        async let finishing = second.finishSignIn()
        await asked.isReached()
        let (other, url) = (server.newAddress("bob"), server.url)
        let refused = await codeOf {
            try await second.signIn(other) { _ in
                let code = try await sentCode(url, other)
                asked.open()
                return code
            }
        }
        XCTAssertEqual(refused, "ALREADY_SIGNED_IN")
        let userId = try await finishing.userId
        XCTAssertEqual(userId, owner.userId)
        XCTAssertEqual(second.userId, owner.userId)
        await owner.close()
        await second.close()
    }

    func testANetworkThatIsAwayDoesNotEndTheWait() async throws {
        let address = server.newAddress("ann")
        let owner = try await person(address)
        let http = AlteredHTTP()
        let second = try await server.app(MemoryAppStorage(), http)
        try await enter(second, address)
        try await answer(owner, approve: true)
        let asked = Locked(0)
        // As often as one request is repeated.
        http.alterations.before = { operation in
            if operation != "login/waiting" { return }
            let count = asked.with { asked in
                asked += 1
                return asked
            }
            if count <= 6 { throw BreakableNetwork.NetworkDown() }
        }
        let userId = try await second.finishSignIn().userId
        XCTAssertEqual(userId, owner.userId)
        XCTAssertEqual(asked.with { $0 }, 7)
        await owner.close()
        await second.close()
    }

    func testAsksComeEveryFiveSecondsLaterEveryMinuteAndNeverSoonerThanTheServerWants() {
        XCTAssertEqual([0, 59, 60].map { pauseMs(asks: $0, retryInS: nil) }, [5_000, 5_000, 60_000])
        XCTAssertEqual(pauseMs(asks: 0, retryInS: 9), 9_000)
        XCTAssertEqual([9, 90].map { pauseMs(asks: 60, retryInS: $0) }, [60_000, 90_000])
        XCTAssertEqual([Int.min, Int.max].map { pauseMs(asks: 0, retryInS: $0) }, [5_000, 3_600_000])
    }

    func testWhiteSpaceOfEverySortIsNoPartOfACode() {
        XCTAssertEqual(withoutSpace(" 12\u{a0}3\r\n4\t5\u{2003}6 "), "123456")
        XCTAssertEqual(normalized("\r\n Ann@Example.ORG \u{a0}"), "ann@example.org")
    }
}
