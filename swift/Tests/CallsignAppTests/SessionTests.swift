import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Sessions on the built server of this project.
final class SessionTests: ServerTestCase {
    private let aheadMs = Locked(0)
    private let storage = MemoryAppStorage()

    private func session(of storage: MemoryAppStorage? = nil) async throws -> Session {
        let aheadMs = aheadMs
        let server = try self.server.seen(nowMs: { systemTimeMs() + aheadMs.with { $0 } })
        return try await Session.open(server, storage ?? self.storage)
    }

    private func signIn(_ session: Session, _ email: String) async throws {
        let sent = try await session.requestCode(email: email, displayName: "Ann")
        _ = try await session.verifyCode(sent.challengeId, server.code(for: email))
    }

    func testAPersonSignsInByACodeAndIsSignedInAfterARestart() async throws {
        let address = server.newAddress("ann")
        let session = try await session()
        let before = await codeOf { try await session.request("GET", "devices") }
        XCTAssertEqual(before, "SIGNED_OUT")
        let sent = try await session.requestCode(email: address, displayName: "Ann")
        let otp = try await server.code(for: address)
        XCTAssertEqual(otp.count, sent.otpLength)
        let wrong = String(otp.map { $0 == "9" ? "0" : "9" })
        let refused = await codeOf { _ = try await session.verifyCode(sent.challengeId, wrong) }
        XCTAssertEqual(refused, "OTP_INVALID")
        _ = try await session.verifyCode(sent.challengeId, otp)
        let (userId, challenge) = await (session.userId, session.challenge)
        XCTAssertNotNil(userId)
        XCTAssertEqual(challenge?.count, 32)
        try await session.request("GET", "devices")
        let again = try await self.session()
        let sameUserId = await again.userId
        XCTAssertEqual(userId, sameUserId)
        try await again.request("GET", "devices")
    }

    func testTokensAreRenewedOnceForAllRequestsAndKeptBeforeTheyAreUsed() async throws {
        let session = try await session()
        try await signIn(session, server.newAddress("ann"))
        let first = try await session.accessToken()
        let same = try await session.accessToken()
        XCTAssertEqual(first, same)
        aheadMs.with { $0 = 3_000_000 }
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<8 { group.addTask { try await session.accessToken() } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        XCTAssertEqual(tokens.count, 1)
        XCTAssertFalse(tokens.contains(first))
        let kept = try await self.session().accessToken()
        XCTAssertEqual(tokens, [kept])
        try await session.request("GET", "devices")
    }

    func testALogoutEndsTheSessionHereAndOnTheServer() async throws {
        let address = server.newAddress("ann")
        let session = try await session()
        try await signIn(session, address)
        let copy = MemoryAppStorage()
        try await copy.put("session", storage.get("session"))
        try await session.logout()
        let userId = await session.userId
        XCTAssertNil(userId)
        let refused = await codeOf { try await session.request("GET", "devices") }
        XCTAssertEqual(refused, "SIGNED_OUT")
        let left = try await self.session(of: copy)
        let leftUserId = await left.userId
        XCTAssertNotNil(leftUserId)
        var ended = await left.ended.makeAsyncIterator()
        let over = await codeOf { try await left.request("GET", "devices") }
        XCTAssertTrue(["TOKEN_INVALID", "SESSION_REVOKED"].contains(over))
        let told = await ended.next()
        XCTAssertEqual(told?.code, over)
        let overUserId = await left.userId
        XCTAssertNil(overUserId)
        try await signIn(session, address)
        try await session.request("GET", "devices")
    }

    func testADamagedSessionInTheStorageIsAnError() async throws {
        for text in ["", "{", "[]", "{}", #"{"refreshToken":"x","accessToken":"y"}"#] {
            try await storage.put("session", text)
            let code = await codeOf { _ = try await self.session() }
            XCTAssertEqual(code, "STORAGE_CORRUPT", text)
        }
    }

    func testASecondSignInIsRefusedAndTheFirstOneStays() async throws {
        let session = try await session()
        let (first, second) = (server.newAddress("ann"), server.newAddress("bob"))
        try await signIn(session, first)
        let userId = await session.userId
        let code = await codeOf { try await self.signIn(session, second) }
        XCTAssertEqual(code, "ALREADY_SIGNED_IN")
        let after = await session.userId
        XCTAssertEqual(userId, after)
    }
}
