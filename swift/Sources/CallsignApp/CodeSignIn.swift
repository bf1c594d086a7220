// Signing in by a code, or a token of the app's backend. Where the account has a device that can be asked, a right code waits for
// its answer, for hours or days: the wait is kept in the storage, and goes on after the app is closed.
import CallsignVerify

/// A code is on its way. `error` is why the last one was refused; its member `attemptsLeft` says how many more may be tried.
public struct CodeQuestion: Sendable {
    public let sent: CodeSent
    public let error: CallsignError?
    private let another: @CallsignActor @Sendable (_ attestation: String?) async throws -> CodeSent

    init(
        _ sent: CodeSent,
        _ error: CallsignError?,
        another: @escaping @CallsignActor @Sendable (_ attestation: String?) async throws -> CodeSent
    ) {
        self.sent = sent
        self.error = error
        self.another = another
    }

    /// Sends another code, after `sent.resendInS` seconds. `attestation` is what the operator's check asks of the app.
    @discardableResult
    public func resend(attestation: String? = nil) async throws -> CodeSent { try await another(attestation) }
}

/// Asks the user for the code.
public typealias CodeConfirmation = @Sendable (CodeQuestion) async throws -> String

/// What a sign-in by a code may say beside the address.
struct SignInOptions: Sendable {
    var displayName: String?
    var country: String?
    var attestation: String?
    var reclaim = false
}

/// A sign-in of this app that waits for its owner. `signInCode` is twenty digits: the device that is asked shows the same ones.
/// Without an answer it goes through at `untilMs`. `address` is empty for a token of the app's backend.
public struct WaitingSignIn: Sendable, Equatable {
    public let address: String
    public let signInCode: String
    public let untilMs: Int
}

@CallsignActor final class CodeSignIn {
    private struct Kept: Sendable {
        let waitingId: String
        let signIn: WaitingSignIn
    }

    private let session: Session
    private let storage: any AppStorage
    private let keysOf: DeviceKeysOf

    init(_ session: Session, _ storage: any AppStorage, _ keysOf: @escaping DeviceKeysOf) {
        self.session = session
        self.storage = storage
        self.keysOf = keysOf
    }

    /// Throws `SIGN_IN_WAITING` once the wait is kept.
    func signIn(_ address: String, _ options: SignInOptions, _ confirm: @escaping CodeConfirmation) async throws -> User {
        let sent = try await session.requestCodeFor(address, options)
        let kept = try await kept()
        let waitingId = kept.flatMap { normalized($0.signIn.address) == normalized(address) ? $0.waitingId : nil }
        do {
            let user = try await confirmed(session, sent, confirm) { challengeId, code in
                let proofs = try await self.proofs(challengeId, waitingId, reclaim: options.reclaim)
                return try await self.session.verifyCode(challengeId, code, proofs: proofs)
            }
            if kept != nil { try await forget() }
            return user
        } catch let refused as CallsignError {
            if refused.code == Self.waitingCode { try await keep(address, refused) }
            throw refused
        }
    }

    /// By a token of the app's backend. Throws `SIGN_IN_WAITING` once the wait is kept.
    func signInByToken(_ token: String) async throws -> User {
        let kept = try await kept()
        let challenge = Array(sha256(Array(token.utf8)).prefix(Self.challengeOctets))
        do {
            let user = try await session.verifyToken(token, device: device(challenge))
            if kept != nil { try await forget() }
            return user
        } catch let refused as CallsignError {
            if refused.code == Self.waitingCode { try await keep("", refused) }
            throw refused
        }
    }

    /// Nil where none waits, or a user is signed in.
    func waiting() async throws -> WaitingSignIn? { try await kept()?.signIn }

    /// Asks until the sign-in that waits is in: the user, and the address. Throws `SIGN_IN_REFUSED` or `SIGN_IN_GONE`.
    func finish() async throws -> (user: User, address: String) {
        var asks = 0
        while true {
            guard let kept = try await kept() else { throw CallsignError(Self.goneCode, "No sign-in waits: begin again.") }
            do {
                let user = try await session.fetchWaiting(kept.waitingId)
                try await forget()
                return (user, kept.signIn.address)
            } catch let error as CallsignError {
                if error.hasCode(Self.refusedCode, Self.goneCode) { try await forget() }
                if !Self.mayPass(error) { throw error }
                let ms = pauseMs(asks: asks, retryInS: error.members.number("retryIn"))
                asks += 1
                try await pause(forMs: ms)
            }
        }
    }

    private func proofs(_ challengeId: String, _ waitingId: String?, reclaim: Bool) async throws -> [String: JSONValue] {
        var proofs: [String: JSONValue] = [:]
        if let challenge = octetsOfId(challengeId) { proofs["device"] = try await device(challenge).map(JSONValue.object) }
        if let waitingId { proofs["waitingId"] = .string(waitingId) }
        if reclaim { proofs["reclaim"] = true }
        return proofs
    }

    /// Where this is a device of the last user, whose sign-in it may be.
    private func device(_ challenge: [UInt8]) async throws -> [String: JSONValue]? {
        guard let last = try await storage.lastSignIn() else { return nil }
        return await deviceProof(storage, keysOf, last.userId, challenge: challenge)
    }

    private func kept() async throws -> Kept? {
        if session.userId != nil { return nil }
        return try await storage.read(Self.key, Self.keptIn)
    }

    private nonisolated static func keptIn(_ members: [String: JSONValue]) -> Kept? {
        guard let address = members.text("address"), let signInCode = members.text("signInCode"),
            let untilMs = members.number("untilMs"), let waitingId = members.text("waitingId")
        else { return nil }
        return Kept(
            waitingId: waitingId,
            signIn: WaitingSignIn(address: address, signInCode: signInCode, untilMs: untilMs)
        )
    }

    private func keep(_ address: String, _ waiting: CallsignError) async throws {
        let members = waiting.members
        try await storage.write(Self.key, [
            "address": .string(address),
            "waitingId": .string(members.needText("waitingId")),
            "signInCode": .string(members.needText("signInCode")),
            "untilMs": .string("\(members.needTimeMs("until"))"),
        ])
    }

    private func forget() async throws { try await storage.write(Self.key, nil) }

    private static let key = "waiting-sign-in"
    private static let challengeOctets = 16
    private static let waitingCode = "SIGN_IN_WAITING"
    private static let refusedCode = "SIGN_IN_REFUSED"
    private static let goneCode = "SIGN_IN_GONE"

    private static func mayPass(_ error: CallsignError) -> Bool {
        error.hasCode(waitingCode, CallsignError.LocalCode.noAnswer) || error.status == 429 || (error.status ?? 0) >= 500
    }
}

/// Asks for the code until `verify` takes it.
@CallsignActor func confirmed(
    _ session: Session,
    _ first: CodeSent,
    _ confirm: @escaping CodeConfirmation,
    _ verify: @CallsignActor (_ challengeId: String, _ code: String) async throws -> User
) async throws -> User {
    let newest = Newest(first)
    var error: CallsignError?
    while true {
        let question = CodeQuestion(newest.sent, error) { attestation in
            newest.sent = try await session.resendCode(newest.sent.challengeId, attestation: attestation)
            return newest.sent
        }
        let code = withoutSpace(try await confirm(question))
        do {
            return try await verify(newest.sent.challengeId, code)
        } catch let refused as CallsignError {
            if refused.code != "OTP_INVALID" || refused.members.number("attemptsLeft") == 0 { throw refused }
            error = refused
        }
    }
}

/// The code that was sent last.
@CallsignActor private final class Newest {
    var sent: CodeSent

    init(_ sent: CodeSent) { self.sent = sent }
}

func withoutSpace(_ text: String) -> String {
    var scalars = String.UnicodeScalarView()
    scalars.append(contentsOf: text.unicodeScalars.lazy.filter { !$0.properties.isWhitespace })
    return String(scalars)
}

/// In the first minutes the owner holds both devices; later a minute does not matter. `retryInS` is the server's wish.
func pauseMs(asks: Int, retryInS: Int?) -> Int {
    let often = 60
    let retryInSMax = 3_600
    return max(asks < often ? 5_000 : 60_000, 1_000 * min(max(retryInS ?? 0, 0), retryInSMax))
}

/// Whose session began last, and by which address.
struct LastSignIn: Sendable {
    let userId: UInt64
    let address: String
}

extension AppStorage {
    func lastSignIn() async throws -> LastSignIn? {
        try await read(addressKey) { kept in
            guard let userId = kept.id("userId"), let address = kept.text("address") else { return nil }
            return LastSignIn(userId: userId, address: address)
        }
    }

    func keepLastSignIn(_ userId: UInt64, _ address: String) async throws {
        try await write(addressKey, ["userId": .string("\(userId)"), "address": .string(normalized(address))])
    }
}

/// Without white space around it, in small letters.
func normalized(_ address: String) -> String {
    let scalars = address.unicodeScalars
    let trimmed = scalars.drop { $0.properties.isWhitespace }.reversed().drop { $0.properties.isWhitespace }.reversed()
    var view = String.UnicodeScalarView()
    view.append(contentsOf: trimmed)
    return String(view).lowercased()
}

private let addressKey = "address"
