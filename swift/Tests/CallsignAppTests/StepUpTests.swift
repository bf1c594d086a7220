import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

private let code = "424242"
private let addresses = (0..<20).map { "p\($0)@example.org" }
private let unused = Locked(addresses)

/// Proofs that operations are refused without, passkeys, and what an app says beside a code, on the built server.
final class StepUpTests: ServedTests {
    override class var settings: [String: String] {
        let identifiers = JSONValue.object(Dictionary(uniqueKeysWithValues: addresses.map { ($0, .string(code)) }))
        return ["CALLSIGN_TEST_IDENTIFIERS": identifiers.text]
    }

    /// Requests, such as `POST user/step-up`, with their bodies.
    private let heard = Hearing()

    private func app(
        _ passkeys: (any PasskeyAuthenticator)? = nil,
        _ storage: MemoryAppStorage = MemoryAppStorage()
    ) async throws -> Callsign {
        let pins = try await developmentPins(server.url)
        return Callsign(server: try server.seen(heard), pins: pins, storage: storage, passkeys: passkeys)
    }

    /// Their device is on their list.
    private func person(
        _ passkeys: (any PasskeyAuthenticator)? = nil,
        _ storage: MemoryAppStorage = MemoryAppStorage()
    ) async throws -> Callsign {
        let app = try await app(passkeys, storage)
        try await enter(app)
        return app
    }

    private func enter(_ app: Callsign) async throws {
        try await app.signIn(unused.with { $0.removeFirst() }, displayName: "Ann") { _ in code }
    }

    /// The next question, from now on.
    private func question(_ app: Callsign) -> Task<ProofQuestion, any Error> {
        let values = app.proofNeeded.values
        return Task {
            for await case let question? in values { return question }
            throw Absent(name: "question")
        }
    }

    /// Returns when nobody reads the app's questions any more.
    private func unread(_ app: Callsign) async { while app.proofNeeded.isRead { await Task.yield() } }

    private func deletion(_ app: Callsign) -> Task<String?, Never> {
        Task { await codeOf { _ = try await app.account.delete() } }
    }

    func testWhereNobodyReadsQuestionsTheOperationIsRefused() async throws {
        let me = try await person()
        let refused = await codeOf { _ = try await me.account.delete() }
        XCTAssertEqual(refused, "STEP_UP_REQUIRED")
        XCTAssertNil(me.proofNeeded.value)
        XCTAssertEqual(heard.bodies("POST user/step-up"), [])
        await me.close()
    }

    func testOperationsThatAreRefusedTogetherWaitForOneProofOfThisDeviceAndAreRepeated() async throws {
        let me = try await person()
        let values = me.proofNeeded.values
        let questions = Locked(0)
        let asking = Task { for await case _? in values { questions.with { $0 += 1 } } }
        let asked = question(me)
        let primary = try known(await me.account.loginMethods().first, "method")
        let setting = (0..<3).map { _ in Task { try await me.account.setPrimaryLoginMethod(primary.id).map(\.id) } }
        let proof = try await asked.value
        XCTAssertEqual(proof.ways, [.code])
        let sentTo = await proof.sentTo
        XCTAssertTrue(try known(sentTo, "sentTo").contains("•"))
        try await proof.confirm(" \(code.prefix(3)) \(code.dropFirst(3)) ")
        for each in setting {
            let ids = try await each.value
            XCTAssertEqual(ids, [primary.id])
        }
        try await me.account.setPrimaryLoginMethod(primary.id)
        XCTAssertNil(me.proofNeeded.value)
        let sent = heard.bodies("POST user/step-up")
        XCTAssertEqual(sent.map { $0["otp"]?.string }, [code])
        XCTAssertEqual(sent.first?["deviceSignature"]?.string?.utf8.count, 88)
        asking.cancel()
        await asking.value
        XCTAssertEqual(questions.with { $0 }, 1)
        await me.close()
    }

    func testAnOperationWhoseRefusalComesAfterTheProofOfAnotherIsRepeatedWithoutAQuestion() async throws {
        let me = try await person()
        let primary = try known(await me.account.loginMethods().first, "method")
        let gate = Gate()
        heard.altered.alterations.after = once({ $0 == "user/export" }) { await gate.pass() }
        let asked = question(me)
        let exporting = Task { try await me.account.export() }
        await gate.isReached()
        let setting = Task { try await me.account.setPrimaryLoginMethod(primary.id) }
        try await asked.value.confirm(code)
        _ = try await setting.value
        await unread(me)
        gate.open()
        let user = try userOf(await exporting.value.member("user"))
        XCTAssertEqual(me.userId, user.userId)
        await me.close()
    }

    func testAWrongCodeLeavesTheQuestionOpenAndOneThatHasEndedIsReplaced() async throws {
        let me = try await person()
        let asked = question(me)
        let deleting = deletion(me)
        let proof = try await asked.value
        for _ in 0..<5 {
            let wrong = await codeOf { try await proof.confirm("000000") }
            XCTAssertEqual(wrong, "OTP_INVALID")
        }
        let gone = await codeOf { try await proof.confirm(code) }
        XCTAssertEqual(gone, "CHALLENGE_GONE")
        let sentTo = await proof.sentTo
        let again = try await proof.sendCode().sentTo
        XCTAssertEqual(sentTo, again)
        try await proof.confirm(code)
        let refused = await deleting.value
        XCTAssertNil(refused)
        await me.close()
    }

    func testRefusedTheOperationIsAndTheNextOneAsksAgain() async throws {
        let me = try await person()
        let asked = question(me)
        let deleting = deletion(me)
        let proof = try await asked.value
        await proof.refuse()
        let refused = await deleting.value
        let gone = await codeOf { try await proof.confirm(code) }
        XCTAssertEqual([refused, gone], ["STEP_UP_REQUIRED", "CHALLENGE_GONE"])
        let again = question(me)
        let second = deletion(me)
        try await again.value.confirm(code)
        let proven = await second.value
        XCTAssertNil(proven)
        await me.close()
    }

    func testWhatWaitsWhenTheUserSignsOutEndsAndProvesNothingForTheNextUserOfTheApp() async throws {
        let me = try await person()
        let asked = question(me)
        let deleting = deletion(me)
        let proof = try await asked.value
        try await me.signOut()
        let ended = await deleting.value
        XCTAssertEqual(ended, "SIGNED_OUT")
        try await enter(me)
        let codes = [await codeOf { try await proof.confirm(code) }, await codeOf { try await proof.sendCode() }]
        XCTAssertEqual(codes, ["CHALLENGE_GONE", "CHALLENGE_GONE"])
        XCTAssertEqual(heard.bodies("POST user/step-up"), [])
        await me.close()
    }

    func testAProvidersTokenGoesAsItIsWithTheSignature() async throws {
        let me = try await person()
        let asked = question(me)
        let deleting = deletion(me)
        let proof = try await asked.value
        let refused = await codeOf { try await proof.byProvider("google", idToken: "aa.bb.cc", nonce: "n") }
        XCTAssertNotNil(refused)
        let sent = heard.bodies("POST user/step-up")
        XCTAssertEqual(sent.count, 1)
        XCTAssertEqual(["provider", "idToken", "nonce"].map { sent.first?[$0]?.string }, ["google", "aa.bb.cc", "n"])
        XCTAssertNotNil(sent.first?["deviceSignature"])
        await proof.refuse()
        let ended = await deleting.value
        XCTAssertEqual(ended, "STEP_UP_REQUIRED")
        await me.close()
    }

    func testAPasskeyIsAddedSignsInAndProvesWhoTheUserIs() async throws {
        let storage = MemoryAppStorage()
        let me = try await person(SoftwareAuthenticator(server.url), storage)
        let userId = me.userId
        let asked = question(me)
        let adding = Task { try await me.addPasskey(label: "Phone") }
        try await asked.value.confirm(code)
        let method = try await adding.value
        XCTAssertEqual([method.kind, method.label], ["passkey", "Phone"])
        XCTAssertEqual([method.backedUp, method.primary], [true, false])
        let kinds = try await me.account.loginMethods().map(\.kind)
        XCTAssertEqual(Set(kinds), ["email", "passkey"])
        try await me.signOut()
        let again = try await me.signInByPasskey().userId
        XCTAssertEqual(userId, again)
        await me.close()
        try await refusesWithoutAnAuthenticator(storage)

        try await me.resume()
        // Its sign-in is a proof, but for a listed device, which signs it.
        let second = question(me)
        let deleting = deletion(me)
        let proof = try await second.value
        XCTAssertEqual(Set(proof.ways), [.code, .passkey])
        let sentTo = await proof.sentTo
        XCTAssertNil(sentTo)
        let unsent = await codeOf { try await proof.confirm(code) }
        XCTAssertEqual(unsent, "CHALLENGE_GONE")
        try await proof.byPasskey()
        let refused = await deleting.value
        XCTAssertNil(refused)
        await me.close()
    }

    private func refusesWithoutAnAuthenticator(_ storage: MemoryAppStorage) async throws {
        let plain = try await app(nil, storage)
        try await plain.resume()
        let asked = question(plain)
        let deleting = deletion(plain)
        let proof = try await asked.value
        XCTAssertEqual(proof.ways, [.code])
        await proof.refuse()
        let refused = await deleting.value
        XCTAssertEqual(refused, "STEP_UP_REQUIRED")
        await plain.close()
    }

    func testWithoutAnAuthenticatorNoPasskeyIsMadeAndOneThatGivesNonsenseSaysSo() async throws {
        struct Broken: PasskeyAuthenticator {
            func create(_ options: String) async throws -> String { "no JSON" }
            func get(_ options: String) async throws -> String { "[]" }
        }
        let me = try await person()
        let adding = await codeOf { try await me.addPasskey() }
        try await me.signOut()
        let entering = await codeOf { try await me.signInByPasskey() }
        let broken = try await app(Broken())
        let nonsense = await codeOf { try await broken.signInByPasskey() }
        XCTAssertEqual([adding, entering, nonsense], [String](repeating: "PASSKEY_UNAVAILABLE", count: 3))
        XCTAssertEqual(heard.bodies("POST login/passkey"), [])
        await me.close()
        await broken.close()
    }

    func testAnAccountIsReadExportedAndChangedWithAnAddressWhoseCodeIsAskedFor() async throws {
        let me = try await person()
        let asked = question(me)
        let second = unused.with { $0.removeFirst() }
        let adding = Task { try await me.account.addLoginMethod(second) { _ in code } }
        try await asked.value.confirm(code)
        try await adding.value
        let added = try known(await me.account.loginMethods().first { $0.value == second }, second)
        let primary = try await me.account.setPrimaryLoginMethod(added.id).filter(\.primary).map(\.id)
        XCTAssertEqual(primary, [added.id])
        let email = try await me.account.read().email
        XCTAssertEqual(email, second)
        let exported = try userOf(await me.account.export().member("user")).userId
        XCTAssertEqual(exported, me.userId)
        let first = try known(await me.account.loginMethods().first { !$0.primary }, "first")
        try await me.account.removeLoginMethod(first.id)
        let left = try await me.account.loginMethods().map(\.value)
        XCTAssertEqual(left, [second])
        let erasesAtMs = try await me.account.delete()
        XCTAssertGreaterThan(erasesAtMs, systemTimeMs())
        await me.close()
    }

    func testWhatTheOperatorsCheckAsksForGoesWithTheAddressAndWithEachFurtherCode() async throws {
        let me = try await app()
        let address = unused.with { $0.removeFirst() }
        try await me.signIn(address, displayName: "Ann", attestation: "first") { question in
            let resending = await codeOf { try await question.resend(attestation: "second") }
            XCTAssertTrue([nil, "OTP_COOLDOWN"].contains(resending))
            return code
        }
        XCTAssertEqual(heard.bodies("POST login").map { $0["attestation"]?.string }, ["first"])
        XCTAssertEqual(heard.bodies("POST resend-otp").map { $0["attestation"]?.string }, ["second"])
        await me.close()
    }
}

/// Requests as they leave.
private final class Hearing: HTTPTransport {
    let altered = AlteredHTTP()
    private let heard = Locked<[(operation: String, body: JSONValue)]>([])

    func bodies(_ operation: String) -> [JSONValue] { heard.with { $0 }.filter { $0.operation == operation }.map(\.body) }

    func send(_ request: HTTPRequest) async throws -> HTTPAnswer {
        if let at = request.url.range(of: "/app/api/") {
            let body = request.body.flatMap { JSONValue(octets: $0) } ?? .null
            heard.with { $0.append(("\(request.method) \(request.url[at.upperBound...])", body)) }
        }
        return try await altered.send(request)
    }
}
