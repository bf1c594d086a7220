// One sign-in: its tokens, kept before they are used, and requests with them.
import CallsignVerify

/// A code is on its way to `sentTo`. It has `otpLength` digits; another one can be had after `resendInS` seconds.
public struct CodeSent: Sendable, Equatable {
    public let challengeId: String
    public let sentTo: String
    public let otpLength: Int
    public let resendInS: Int
}

func codeSentOf(_ challenge: [String: JSONValue]) throws -> CodeSent {
    CodeSent(
        challengeId: try challenge.needText("challengeId"),
        sentTo: try challenge.needText("sentTo"),
        otpLength: try challenge.needNumber("otpLength"),
        resendInS: try challenge.needNumber("resendIn")
    )
}

/// The session of one user on `server`. Safe to share between tasks; one for each `AppStorage`. Made by `open`.
@CallsignActor public final class Session {
    private let server: Server
    private let storage: any AppStorage
    private var kept: KeptSession?

    /// While this device signs out: that the server ends the session is no news then, whichever way it comes first.
    private var isLeaving = false

    /// Its owner's, which holds the session.
    private weak var stepUp: StepUp?
    private let refreshing = Turns()
    private let beginning = Turns()
    private let endings = EventStream<CallsignError>(1)

    private init(_ server: Server, _ storage: any AppStorage, _ kept: KeptSession?) {
        self.server = server
        self.storage = storage
        self.kept = kept
    }

    /// Goes on with the session in the storage, if there is one. Throws `STORAGE_CORRUPT`, and what the storage throws.
    public static func open(_ server: Server, _ storage: any AppStorage) async throws -> Session {
        Session(server, storage, try await storage.readText(sessionKey).map(keptIn))
    }

    /// The server has ended the session. A sign-out by `logout` is not among them.
    public var ended: AsyncStream<CallsignError> { endings.events }

    /// The user who is signed in.
    public var userId: UInt64? { signedIn?.userId }

    /// The session's id, as `user/sessions` has it.
    var id: String? { signedIn?.sessionId }

    /// 32 octets, which the device signs to show that it has its signing key (`possessionMessage`).
    public var challenge: [UInt8]? { signedIn.flatMap { base64Octets($0.challenge) } }

    /// Asks for a code to either kind of address.
    func requestCodeFor(_ address: String, _ options: SignInOptions) async throws -> CodeSent {
        try await codeSent("login", [
            "displayName": options.displayName,
            "country": options.country,
            "attestation": options.attestation,
            "identifier": address,
        ])
    }

    /// Asks for a code to an email address. `displayName` counts for a newcomer.
    public func requestCode(email: String, displayName: String? = nil) async throws -> CodeSent {
        try await codeSent("login", ["email": email, "displayName": displayName])
    }

    /// Asks for a code to a phone number; `country`, two letters, is for a number without calling code.
    public func requestCode(phone: String, country: String? = nil, displayName: String? = nil) async throws -> CodeSent {
        try await codeSent("login", ["phone": phone, "country": country, "displayName": displayName])
    }

    /// Sends another code of this challenge; the last one is void then. `attestation` is what the operator's check asks of the
    /// app.
    public func resendCode(_ challengeId: String, attestation: String? = nil) async throws -> CodeSent {
        try await codeSent("resend-otp", ["challengeId": challengeId, "attestation": attestation])
    }

    /// Signs in by a code. `OTP_INVALID` has `attemptsLeft` among its members. `SIGN_IN_WAITING` has `waitingId`: a device of the
    /// user has to approve the sign-in.
    public func verifyCode(_ challengeId: String, _ otp: String) async throws -> User {
        try await verifyCode(challengeId, otp, proofs: [:])
    }

    /// `proofs` are `device` and `waitingId`, where this app has them.
    func verifyCode(_ challengeId: String, _ otp: String, proofs: [String: JSONValue]) async throws -> User {
        let code = bodyOf(["challengeId": challengeId, "otp": otp, "refreshToken": kept?.refreshToken])
        return try await begin("verify-login", code.merging(proofs) { $1 })
    }

    /// Signs in by a sign-in that has waited. Throws `SIGN_IN_WAITING` while it does, `SIGN_IN_REFUSED` and `SIGN_IN_GONE`.
    func fetchWaiting(_ waitingId: String) async throws -> User {
        try await begin("login/waiting", ["waitingId": .string(waitingId)])
    }

    /// Signs in by what an identity provider has signed, such as Google's ID token.
    public func verifyProvider(
        _ provider: String,
        idToken: String,
        nonce: String? = nil,
        displayName: String? = nil
    ) async throws -> User {
        let members = ["platform": provider, "idToken": idToken, "nonce": nonce, "displayName": displayName]
        return try await begin("platform-login", bodyOf(members))
    }

    /// Signs in by a token of the app's backend; `device` shows that this is a listed device of its user.
    func verifyToken(_ token: String, device: [String: JSONValue]?) async throws -> User {
        var claim: [String: JSONValue] = ["verified": true, "signInToken": .string(token)]
        claim["device"] = device.map(JSONValue.object)
        return try await begin("login", claim)
    }

    /// For the authenticator: any passkey of this server.
    func passkeyOptions() async throws -> [String: JSONValue] {
        guard let reply = try await server.request("POST", "passkey/options") else { throw answerInvalid() }
        return try reply.member("options")
    }

    func verifyPasskey(_ credential: [String: JSONValue]) async throws -> User {
        try await begin("login/passkey", ["credential": .object(credential)])
    }

    /// Proofs that operations are refused without come from `stepUp`: each such operation is repeated once.
    func proveBy(_ stepUp: StepUp) { self.stepUp = stepUp }

    /// A request of the user who is signed in, as `Server.request`. Throws `SIGNED_OUT` without one. Expired tokens are renewed
    /// once on the way.
    @discardableResult
    public func request(
        _ method: String,
        _ operation: String,
        body: [String: JSONValue]? = nil,
        headers: [String: String] = [:]
    ) async throws -> [String: JSONValue]? {
        var all = idempotencyKey(of: method).merging(headers) { $1 }
        let sessionId = id
        let prover = stepUp
        var hasRefreshed = false
        var hasProven = false
        while true {
            let token = try await accessToken()
            let proofs = prover?.count
            all["authorization"] = "Bearer \(token)"
            do {
                return try await server.request(method, operation, body: body, headers: all)
            } catch let error as CallsignError {
                if !hasRefreshed && error.code == "TOKEN_EXPIRED" {
                    try await refresh(token)
                    hasRefreshed = true
                } else if !hasProven, let prover, error.code == "STEP_UP_REQUIRED" {
                    // Another operation's proof may have come while this one was on its way.
                    hasProven = prover.count == proofs
                    if hasProven { try await prover.prove(error) }
                    if id != sessionId { throw signedOut() }
                    hasRefreshed = false
                } else {
                    if overCodes.contains(error.code) && signedIn?.accessToken == token { await end(error).value }
                    throw error
                }
            }
        }
    }

    /// A token that is good for a while, for a connection. Throws `SIGNED_OUT`, or what the renewal of a spent one throws.
    public func accessToken() async throws -> String {
        let held = try assertSignedIn()
        if server.nowMs() < held.renewAtMs { return held.accessToken }
        do {
            try await refresh(held.accessToken)
        } catch let error as CallsignError {
            // The token at hand is still good.
            if signedIn == nil || server.nowMs() >= held.expiresAtMs { throw error }
        }
        return try assertSignedIn().accessToken
    }

    /// The header for a request to this address; nil without a session, and for any other server than its own.
    func authorization(at url: String) async throws -> String? {
        guard server.isAt(url) else { return nil }
        do {
            return "Bearer \(try await accessToken())"
        } catch is CallsignError {
            return nil
        }
    }

    /// Ends the session on the server. Throws, and leaves it as it is, where the server can't be asked.
    public func logout(allDevices: Bool = false) async throws {
        isLeaving = true
        defer { isLeaving = false }
        do {
            try await request("POST", "logout", body: ["allDevices": .bool(allDevices)])
        } catch let error as CallsignError {
            if signedIn != nil { throw error }
        }
        if let held = signedIn { try await keep(forget(held)) }
    }

    /// A request of `request` whose answer is an object.
    func ask(
        _ method: String,
        _ operation: String,
        body: [String: JSONValue]? = nil,
        headers: [String: String] = [:]
    ) async throws -> [String: JSONValue] {
        guard let reply = try await request(method, operation, body: body, headers: headers) else { throw answerInvalid() }
        return reply
    }

    /// Gets new tokens in place of the pair with this access token, which the server calls expired.
    func renew(_ accessToken: String) async throws { try await refresh(accessToken) }

    /// The server has ended the session, and said so elsewhere than in an answer to a request. Nobody is signed in when this
    /// returns; what it returns ends when the storage has that, too.
    @discardableResult
    func endBy(_ error: CallsignError) -> Task<Void, Never> { end(error) }

    private var signedIn: KeptSession.SignedIn? {
        if case .signedIn(let held) = kept { held } else { nil }
    }

    private func assertSignedIn() throws -> KeptSession.SignedIn {
        guard let signedIn else { throw signedOut() }
        return signedIn
    }

    private func codeSent(_ operation: String, _ members: [String: String?]) async throws -> CodeSent {
        // By the last token the server knows this app's user: strangers can't use up their codes.
        let all = members.merging(["refreshToken": kept?.refreshToken]) { $1 }
        return try codeSentOf(await reply(to: operation, bodyOf(all)))
    }

    private func reply(to operation: String, _ body: [String: JSONValue]) async throws -> [String: JSONValue] {
        guard let reply = try await server.request("POST", operation, body: body) else { throw answerInvalid() }
        return reply
    }

    /// A caller that gives up does not take the new session with it. Throws `ALREADY_SIGNED_IN` where a sign-in that has waited
    /// came before.
    private func begin(_ operation: String, _ body: [String: JSONValue]) async throws -> User {
        try await beginning.one {
            if self.signedIn != nil {
                let sentence = "A user is signed in already. Sign out first."
                throw CallsignError(CallsignError.LocalCode.alreadySignedIn, sentence)
            }
            return try await uncancelled {
                let reply = try await self.reply(to: operation, body)
                let user = try userOf(reply.member("user"))
                try await self.take(user.userId, reply)
                return user
            }
        }
    }

    /// Tokens are in the storage before anything is done with them.
    private func take(_ userId: UInt64, _ pair: [String: JSONValue]) async throws {
        // KeptSession far from where sums overflow.
        let expiresInS = min(max(try pair.needNumber("expiresIn"), 0), 10_000_000_000)
        let expiresAtMs = server.nowMs() + 1_000 * expiresInS
        let taken = KeptSession.SignedIn(
            userId: userId,
            sessionId: try pair.needText("sessionId"),
            accessToken: try pair.needText("accessToken"),
            refreshToken: try pair.needText("refreshToken"),
            challenge: try pair.needText("challenge"),
            renewAtMs: expiresAtMs - 200 * expiresInS,
            expiresAtMs: expiresAtMs
        )
        try await keep(.signedIn(taken))
        kept = .signedIn(taken)
    }

    /// Gets a new pair in place of the one with this access token, once for all who wait for it.
    private func refresh(_ accessToken: String) async throws {
        try await refreshing.one {
            let held = try self.assertSignedIn()
            if held.accessToken != accessToken { return }
            do {
                // A pair that is lost between the answer and the storage would end the session.
                try await uncancelled {
                    let body: [String: JSONValue] = ["refreshToken": .string(held.refreshToken)]
                    try await self.take(held.userId, self.reply(to: "refresh-token", body))
                }
            } catch let error as CallsignError {
                if overCodes.contains(error.code) { await self.end(error).value }
                throw error
            }
        }
    }

    /// Signed out even where the storage fails: the next start then hears it from the server.
    private func end(_ error: CallsignError) -> Task<Void, Never> {
        guard let held = signedIn else { return Task {} }
        let forgotten = forget(held)
        let isNews = !isLeaving
        return Task {
            try? await keep(forgotten)
            if isNews { endings.tell(error) }
        }
    }

    /// The refresh token stays, for the next sign-in.
    private func forget(_ held: KeptSession.SignedIn) -> KeptSession {
        let forgotten = KeptSession.signedOut(refreshToken: held.refreshToken)
        kept = forgotten
        stepUp?.giveUp(signedOut())
        return forgotten
    }

    private func keep(_ kept: KeptSession) async throws { try await storage.writeText(sessionKey, kept.text) }
}

private let sessionKey = "session"

/// Codes by which the server ends the session (docs/protocol/sign-in.md, "Tokens").
private let overCodes: Set = [
    "TOKEN_MISSING",
    "TOKEN_INVALID",
    "SESSION_REVOKED",
    "REFRESH_TOKEN_INVALID",
    "REFRESH_TOKEN_REUSED",
]

private enum KeptSession: Sendable {
    struct SignedIn: Sendable {
        let userId: UInt64
        let sessionId: String
        let accessToken: String
        let refreshToken: String
        let challenge: String
        let renewAtMs: Int
        let expiresAtMs: Int
    }

    case signedIn(SignedIn)
    case signedOut(refreshToken: String)

    var refreshToken: String {
        switch self {
        case .signedIn(let held): held.refreshToken
        case .signedOut(let refreshToken): refreshToken
        }
    }

    var text: String {
        switch self {
        case .signedOut(let refreshToken): JSONValue.object(["refreshToken": .string(refreshToken)]).text
        case .signedIn(let held):
            JSONValue.object([
                "userId": .string("\(held.userId)"),
                "sessionId": .string(held.sessionId),
                "accessToken": .string(held.accessToken),
                "refreshToken": .string(held.refreshToken),
                "challenge": .string(held.challenge),
                "renewAtMs": JSONValue(held.renewAtMs),
                "expiresAtMs": JSONValue(held.expiresAtMs),
            ]).text
        }
    }
}

private func keptIn(_ text: String) throws -> KeptSession {
    guard let members = objectIn(text), let refreshToken = members.text("refreshToken") else { throw corrupt() }
    if members["accessToken"] == nil { return .signedOut(refreshToken: refreshToken) }
    guard let userId = members.id("userId"),
        let sessionId = members.text("sessionId"),
        let accessToken = members.text("accessToken"),
        let challenge = members.text("challenge"), base64Octets(challenge) != nil,
        let renewAtMs = members.number("renewAtMs"),
        let expiresAtMs = members.number("expiresAtMs")
    else { throw corrupt() }
    return .signedIn(
        KeptSession.SignedIn(
            userId: userId,
            sessionId: sessionId,
            accessToken: accessToken,
            refreshToken: refreshToken,
            challenge: challenge,
            renewAtMs: renewAtMs,
            expiresAtMs: expiresAtMs
        )
    )
}

/// Those that are there.
func bodyOf(_ members: [String: String?]) -> [String: JSONValue] { members.compactMapValues { $0.map(JSONValue.string) } }

private func corrupt() -> CallsignError {
    let sentence = "The stored session is damaged. Remove it to start without it."
    return CallsignError(CallsignError.LocalCode.storageCorrupt, sentence)
}
