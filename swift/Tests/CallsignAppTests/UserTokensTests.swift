import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// User tokens: the stories that every SDK runs.
final class UserTokensTests: XCTestCase {
    private struct Asked: Sendable {
        var step: JSONValue = .null
        var count = 0
        var audiences: [String] = []
    }

    func testTheServerIsAskedAsTheStoriesSay() async throws {
        for story in try readVectors("user-token-cache").list("stories") { try await play(story) }
    }

    private func play(_ story: JSONValue) async throws {
        let name = try story.text("name")
        let asked = Locked(Asked())
        var last: [String: String] = [:]
        let tokens = await UserTokens(nowMs: { asked.with { $0.step["atMs"]?.int ?? 0 } }) { audience in
            try asked.with { asked in
                asked.audiences.append(audience)
                if let refusal = asked.step.textOrNil("refusal") { throw CallsignError(refusal, "") }
                asked.count += 1
                return ["token": .string("\(asked.count)"), "expiresIn": try asked.step.get("expiresIn")]
            }
        }
        for step in story.list("steps") {
            asked.with { asked in
                asked.step = step
                asked.audiences = []
            }
            let audience = try step.text("audience")
            let asks = step["asks"]?.bool ?? false
            let answer = await answerOf { try await tokens.token(for: audience) }
            XCTAssertEqual(asked.with { $0.audiences }, asks ? [audience] : [], name)
            let expected = step.textOrNil("refusal") ?? (asks ? "\(asked.with { $0.count })" : last[audience])
            XCTAssertEqual(answer, expected, name)
            if step["refusal"] == nil { last[audience] = answer }
        }
    }

    func testQuestionsAtTheSameTimeAreOneAndFailTogether() async throws {
        let count = Locked(0)
        let gate = Gate()
        let tokens = await UserTokens(nowMs: { 0 }) { _ in
            let isFirst = count.with { count in
                count += 1
                return count == 1
            }
            if !isFirst { return ["token": "one", "expiresIn": 300] }
            await gate.pass()
            throw CallsignError("NO_ANSWER", "")
        }
        let three = (0..<3).map { _ in
            Task { @CallsignActor in
                do {
                    return try await tokens.token(for: "a")
                } catch {
                    return (error as? CallsignError)?.code ?? "\(error)"
                }
            }
        }
        await gate.isReached()
        // Behind all three on the actor.
        await Task { @CallsignActor in }.value
        gate.open()
        for each in three {
            let answer = await each.value
            XCTAssertEqual(answer, "NO_ANSWER")
        }
        XCTAssertEqual(count.with { $0 }, 1)
        for _ in 0..<3 {
            let answer = await answerOf { try await tokens.token(for: "a") }
            XCTAssertEqual(answer, "one")
        }
        XCTAssertEqual(count.with { $0 }, 2)
    }

    func testATokenThatSaysItLastsForeverCrashesNothing() async throws {
        for expiresIn in ["9223372036854775807", "-9223372036854775808"] {
            let tokens = await UserTokens(nowMs: { 1 }) { _ in ["token": "one", "expiresIn": .number(expiresIn)] }
            let answer = await answerOf { try await tokens.token(for: "a") }
            XCTAssertEqual(answer, "one")
        }
    }
}

/// On the built server.
final class ServedUserTokensTests: ServedTests {
    override class var settings: [String: String] { ["CALLSIGN_TOKEN_AUDIENCES": "reports"] }

    func testTheServersTokenNamesTheUserAndTheService() async throws {
        let app = try await server.app()
        let userId = try await server.signIn(app, "Ann")
        let token = try await app.tokenFor("reports")
        let again = try await app.tokenFor("reports")
        XCTAssertEqual(token, again)
        let part = token.split(separator: ".")[1].map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        let padded = String(part) + String(repeating: "=", count: (4 - part.count % 4) % 4)
        let claims = try known(JSONValue(octets: decodeBase64(padded)), "claims")
        XCTAssertEqual(["sub", "aud", "iss"].map { claims[$0]?.string }, ["\(userId)", "reports", server.url])
        let other = await codeOf { _ = try await app.tokenFor("other") }
        try await app.signOut()
        let late = await codeOf { _ = try await app.tokenFor("reports") }
        XCTAssertEqual([other, late], ["AUDIENCE_UNKNOWN", "SIGNED_OUT"])
        await app.close()
    }
}

private func answerOf(_ act: () async throws -> String) async -> String {
    do {
        return try await act()
    } catch {
        return (error as? CallsignError)?.code ?? "\(error)"
    }
}
