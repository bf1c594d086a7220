// Where the user is signed in, and the sign-in that waits for their answer.
import CallsignVerify

/// A session of the user.
public struct UserSession: Sendable, Equatable {
    public let id: String
    public let createdAtMs: Int
    public let lastUsedAtMs: Int
    public let endsAtMs: Int

    /// The prefix of its client's network, such as `203.0.113.0/24`.
    public let network: String?

    /// The client's own text: decide nothing by it.
    public let userAgent: String

    /// How the user signed in: `otp`, `social`, `apple` or `passkey`.
    public let proof: String
    public let device: UserDevice?

    /// It is this app's.
    public let isCurrent: Bool
}

/// A sign-in that waits for the user. Without an answer it goes through at `untilMs`.
public struct SignInToAnswer: Sendable, Equatable {
    public let id: String

    /// Twenty digits, which the screen that waits shows, too.
    public let signInCode: String

    /// `email` or `phone`: by which kind of address it is; or `server`: by a token of the app's backend.
    public let method: String
    public let userAgent: String
    public let network: String?
    public let createdAtMs: Int
    public let untilMs: Int
}

@CallsignActor public final class Sessions {
    private let session: Session
    private let device: RegisteredDevice

    init(_ session: Session, _ device: RegisteredDevice) {
        self.session = session
        self.device = device
    }

    /// Those that last, newest first.
    public func list() async throws -> [UserSession] {
        try await session.ask("GET", "user/sessions").members("items").map(sessionOf)
    }

    /// Throws `SESSION_NOT_FOUND` where it has ended already. To end this app's own, sign out.
    public func end(_ id: String) async throws { _ = try await session.request("DELETE", "user/sessions/\(id)") }

    /// Ends all but this app's own.
    public func endOthers() async throws { _ = try await session.request("DELETE", "user/sessions") }

    /// The sign-in that waits for an answer, if there is one.
    public func waiting() async throws -> [SignInToAnswer] {
        try await session.ask("GET", "user/waiting-sign-ins").members("items").map(signInOf)
    }

    /// Lets a sign-in through, or refuses it, signed by this device: the user has compared the code on both screens. Throws
    /// `SIGN_IN_NOT_FOUND` where it waits no more.
    public func answer(_ id: String, approve: Bool) async throws {
        try await uncancelled { [session, device] in
            guard let octets = octetsOfId(id) else { throw CallsignError("MALFORMED", "That is no id of a sign-in.") }
            let message = try signInAnswerMessage(userId: device.userId, id: octets, isApproved: approve)
            let signature = encodeBase64(try await device.keys.sign(message))
            let answer: [String: JSONValue] = ["approve": .bool(approve), "signature": .string(signature)]
            _ = try await session.request("POST", "user/waiting-sign-ins/\(id)", body: answer)
        }
    }
}

private func sessionOf(_ item: [String: JSONValue]) throws -> UserSession {
    let isCurrent = item.flag("isCurrent")
    return UserSession(
        id: try item.needText("id"),
        createdAtMs: try item.needTimeMs("createdAt"),
        lastUsedAtMs: try item.needTimeMs("lastUsedAt"),
        endsAtMs: try item.needTimeMs("endsAt"),
        network: item.text("network"),
        userAgent: try item.needText("userAgent"),
        proof: try item.needText("proof"),
        device: try item["device"]?.object.map { try deviceOf($0, current: isCurrent) },
        isCurrent: isCurrent
    )
}

private func signInOf(_ item: [String: JSONValue]) throws -> SignInToAnswer {
    SignInToAnswer(
        id: try item.needText("id"),
        signInCode: try item.needText("signInCode"),
        method: try item.needText("method"),
        userAgent: try item.needText("userAgent"),
        network: item.text("network"),
        createdAtMs: try item.needTimeMs("createdAt"),
        untilMs: try item.needTimeMs("until")
    )
}
