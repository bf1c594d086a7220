// The user's profile and login methods.
import CallsignVerify

/// A login method. `kind` is `email`, `phone`, `social` or `passkey`. `value` is the address; of an identity at a provider, the
/// address that the provider named. A passkey has a `label` from its user, and is `backedUp` where it is synced to other devices.
public struct LoginMethod: Sendable, Equatable {
    public let id: UInt64
    public let kind: String
    public let value: String?
    public let provider: String?
    public let label: String?
    public let backedUp: Bool?
    public let verified: Bool
    public let primary: Bool
    public let addedAtMs: Int
    public let lastUsedAtMs: Int
}

/// Most of it takes a fresh proof of who the user is: see `Callsign.proofNeeded`.
@CallsignActor public final class Account {
    private let session: Session

    init(_ session: Session) { self.session = session }

    public func read() async throws -> User { try userOf(await session.ask("GET", "user")) }

    /// `changes` are members of `PUT user`. A new address counts once its code is confirmed: `confirm` is asked for each.
    @discardableResult
    public func update(_ changes: [String: JSONValue], confirm: CodeConfirmation? = nil) async throws -> User {
        let reply = try await session.ask("PUT", "user", body: changes)
        var newest = try userOf(reply.member("user"))
        let pending = reply["pending"] == nil ? [] : try reply.members("pending")
        if let confirm {
            for challenge in pending { newest = try await verify(codeSentOf(challenge), confirm) }
        }
        return newest
    }

    public func loginMethods() async throws -> [LoginMethod] { try methods(in: await session.ask("GET", Self.path)) }

    /// An email address or phone number, which `confirm` is asked the code of; `country` is for a number without calling code.
    public func addLoginMethod(_ address: String, country: String? = nil, confirm: @escaping CodeConfirmation) async throws {
        let kind = address.utf8.contains(UInt8(ascii: "@")) ? "email" : "phone"
        let method = bodyOf(["kind": kind, "value": address, "country": country])
        _ = try await verify(codeSentOf(session.ask("POST", Self.path, body: method)), confirm)
    }

    /// What a provider has signed.
    public func addProvider(_ provider: String, idToken: String, nonce: String? = nil) async throws {
        let method = bodyOf(["kind": "social", "provider": provider, "idToken": idToken, "nonce": nonce])
        try await session.request("POST", Self.path, body: method)
    }

    @discardableResult
    public func setPrimaryLoginMethod(_ id: UInt64) async throws -> [LoginMethod] {
        try methods(in: await session.ask("PUT", "\(Self.path)/primary", body: ["id": .string("\(id)")]))
    }

    public func removeLoginMethod(_ id: UInt64) async throws {
        try await session.request("DELETE", "\(Self.path)/\(id)")
    }

    /// All that the server has of the account. Five a day.
    public func export() async throws -> [String: JSONValue] { try await session.ask("GET", "user/export") }

    /// The account ends, unless the user signs in again before the time that this gives.
    public func delete() async throws -> Int {
        try await session.ask("DELETE", "user", body: ["confirm": true]).needTimeMs("erasesAt")
    }

    private func verify(_ sent: CodeSent, _ confirm: @escaping CodeConfirmation) async throws -> User {
        try await confirmed(session, sent, confirm) { challengeId, otp in
            let code = bodyOf(["challengeId": challengeId, "otp": otp])
            return try userOf(await self.session.ask("POST", "verify", body: code).member("user"))
        }
    }

    private func methods(in reply: [String: JSONValue]) throws -> [LoginMethod] { try reply.members("items").map(loginMethodOf) }

    private static let path = "user/login-methods"
}

func loginMethodOf(_ members: [String: JSONValue]) throws -> LoginMethod {
    LoginMethod(
        id: try members.needId("id"),
        kind: try members.needText("kind"),
        value: members.text("value"),
        provider: members.text("provider"),
        label: members.text("label"),
        backedUp: members.text("backedUp").map { $0 == "true" },
        verified: members.flag("verified"),
        primary: members.flag("primary"),
        addedAtMs: try members.needTimeMs("addedAt"),
        lastUsedAtMs: try members.needTimeMs("lastUsedAt")
    )
}
