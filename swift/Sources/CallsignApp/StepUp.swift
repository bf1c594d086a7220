// Proofs after the sign-in of who the user is (docs/protocol/accounts.md, "Prove it once more"): the server refuses some operations without a
// fresh one. One question to the user serves all operations that wait.
import CallsignVerify

public enum ProofWay: String, Sendable {
    case code
    case passkey
    case provider
}

/// The user has to prove who they are. The refused operation waits until one of the ways succeeds, and is then repeated. A way
/// that throws, such as `OTP_INVALID`, leaves the question open. `refuse` ends it: the operation throws `STEP_UP_REQUIRED`.
@CallsignActor public final class ProofQuestion {
    /// What this account and this app have, the best one first.
    public nonisolated let ways: [ProofWay]
    private let stepUp: StepUp
    fileprivate let answer = Deferred<Bool>()

    /// Operations.
    fileprivate var waiting = 0
    fileprivate var sent: CodeSent?

    fileprivate init(_ stepUp: StepUp, _ ways: [ProofWay]) {
        self.stepUp = stepUp
        self.ways = ways
    }

    /// Where the newest code went, as it may be shown. Nil while none was sent: `sendCode`.
    public var sentTo: String? { sent?.sentTo }

    public func confirm(_ code: String) async throws { try await stepUp.confirm(self, code) }

    public func byPasskey() async throws { try await stepUp.byPasskey(self) }

    /// By a token that the provider has signed since the session began.
    public func byProvider(_ provider: String, idToken: String, nonce: String? = nil) async throws {
        try await stepUp.byProvider(self, provider, idToken, nonce)
    }

    /// Sends a code, or another one. Throws `OTP_COOLDOWN` where the last one is too young.
    @discardableResult
    public func sendCode() async throws -> CodeSent { try await stepUp.sendCode(self) }

    public func refuse() { stepUp.end(self, isProven: false) }
}

/// `asked` is the question that is open: who reads its values asks the user.
@CallsignActor final class StepUp {
    private let session: Session
    private let keysOf: DeviceKeysOf
    private let authenticator: (any PasskeyAuthenticator)?
    private let asked: Watched<ProofQuestion?>

    /// Proofs so far: a request that was refused before the newest one is not asked about.
    private(set) var count = 0

    init(
        _ session: Session,
        _ keysOf: @escaping DeviceKeysOf,
        _ authenticator: (any PasskeyAuthenticator)?,
        _ asked: Watched<ProofQuestion?>
    ) {
        self.session = session
        self.keysOf = keysOf
        self.authenticator = authenticator
        self.asked = asked
    }

    /// Returns once there is a proof. Throws the refusal, or what `giveUp` says.
    func prove(_ refusal: CallsignError) async throws {
        let question = try questionAbout(refusal)
        defer { leave(question) }
        if try await !question.answer.valueUnlessCancelled { throw refusal }
    }

    /// Nobody is signed in any more who could prove anything.
    func giveUp(_ error: CallsignError) {
        asked.value?.answer.fail(error)
        asked.set(nil)
    }

    func end(_ question: ProofQuestion, isProven: Bool) {
        if asked.value !== question { return }
        if isProven { count += 1 }
        asked.set(nil)
        question.answer.complete(isProven)
    }

    func confirm(_ question: ProofQuestion, _ code: String) async throws {
        try await uncancelled {
            guard let challengeId = question.sent?.challengeId else {
                throw CallsignError("CHALLENGE_GONE", "No code was sent yet.")
            }
            let proof = bodyOf(["challengeId": challengeId, "otp": withoutSpace(code)])
            try await self.take(question, proof, challengeId)
        }
    }

    func byPasskey(_ question: ProofQuestion) async throws {
        let present = try assertPresent(authenticator)
        let options = try await uncancelled { try await self.session.ask("POST", "passkey/options").member("options") }
        let credential = try await credentialBy { try await present.get(JSONValue.object(options).text) }
        try await uncancelled {
            try await self.take(question, ["passkey": .object(credential)], options.needText("challenge"))
        }
    }

    func byProvider(_ question: ProofQuestion, _ provider: String, _ idToken: String, _ nonce: String?) async throws {
        try await uncancelled {
            try await self.take(question, bodyOf(["provider": provider, "idToken": idToken, "nonce": nonce]), idToken)
        }
    }

    func sendCode(_ question: ProofQuestion) async throws -> CodeSent {
        try await uncancelled {
            _ = try self.assertOpen(question)
            let sent = try await self.newCode(after: question.sent)
            question.sent = sent
            return sent
        }
    }

    private func newCode(after last: CodeSent?) async throws -> CodeSent {
        guard let last else { return try await firstCode() }
        do {
            return try await session.resendCode(last.challengeId)
        } catch let error as CallsignError where error.code == "CHALLENGE_GONE" {
            return try await firstCode()
        }
    }

    private func questionAbout(_ refusal: CallsignError) throws -> ProofQuestion {
        let open = asked.value
        if open == nil && !asked.isRead { throw refusal }
        let question = open ?? ProofQuestion(self, ways(in: refusal))
        // The newest code is the one that the server is sure to know.
        if let challenge = refusal.members["challenge"]?.object { question.sent = try codeSentOf(challenge) }
        question.waiting += 1
        if open == nil { asked.set(question) }
        return question
    }

    /// A question that no operation waits for any more is not asked.
    private func leave(_ question: ProofQuestion) {
        question.waiting -= 1
        if question.waiting == 0 { end(question, isProven: false) }
    }

    private func ways(in refusal: CallsignError) -> [ProofWay] {
        let named = refusal.members["ways"]?.array ?? []
        let known: [ProofWay] = named.compactMap { namedOrNil($0.string) }
        return known.filter { $0 != .passkey || authenticator != nil }
    }

    private func firstCode() async throws -> CodeSent {
        try codeSentOf(await session.ask("POST", "user/step-up", body: ["send": "code"]).member("challenge"))
    }

    /// `text` is what the device signs: the server takes no proof of a listed device without.
    private func take(_ question: ProofQuestion, _ proof: [String: JSONValue], _ text: String) async throws {
        let userId = try assertOpen(question)
        let message = try stepUpMessage(userId: userId, proof: sha256(Array(text.utf8)))
        let signature = encodeBase64(try await keysOf(userId).sign(message))
        _ = try assertOpen(question)
        try await session.request("POST", "user/step-up", body: proof.merging(["deviceSignature": .string(signature)]) { $1 })
        end(question, isProven: true)
    }

    /// A question of before must not prove who another user of this app is.
    private func assertOpen(_ question: ProofQuestion) throws -> UInt64 {
        guard asked.value === question, let userId = session.userId else {
            throw CallsignError("CHALLENGE_GONE", "This is not asked any more.")
        }
        return userId
    }
}
