// The user's contacts: found by link, id or address, asked, accepted, removed, blocked.
import CallsignVerify

/// A contact; `devices` is how many they have.
public struct Contact: Sendable, Equatable {
    public let person: Person
    public let devices: Int
}

/// A person who asks this user, or whom this user has asked.
public struct ContactRequest: Sendable, Equatable {
    public let requestId: String
    public let person: Person
    public let message: String?
}

/// Why a user is reported; `title` is English, for apps without words of their own.
public struct ReportReason: Sendable, Equatable {
    public let reason: String
    public let title: String
}

/// A part of a list, newest first; `nextCursor` is nil behind the last.
public struct Page<Item: Sendable>: Sendable {
    public let items: [Item]
    public let nextCursor: String?
}

/// What became of a request. By an address it is `submitted`, also where no user has it.
public enum RequestStatus: String, Sendable {
    case pending
    case accepted
    case submitted
}

/// Whom a text leads to: show it, and ask for them only once the user wants it.
public enum Opened: Sendable {
    /// The owner of a link. `relation` is how this user knows them already. `isNamed`: the link itself names the person, so that
    /// no server can put another one in their place.
    case link(displayName: String, relation: String?, isNamed: Bool, ContactAsk)

    /// An id says no name: the server is asked about it with `request` alone.
    case user(userId: UInt64, ContactAsk)

    /// Asks them to become a contact, or accepts what they have asked. Throws `KEYS_REFUSED` where a link names another user than
    /// the server does.
    public func request(message: String? = nil) async throws -> RequestStatus {
        switch self {
        case .link(_, _, _, let ask), .user(_, let ask): try await ask.act(message)
        }
    }
}

/// How a person is asked.
public struct ContactAsk: Sendable {
    let act: @Sendable (String?) async throws -> RequestStatus
}

@CallsignActor public final class Contacts {
    private let session: Session
    private let keyLog: KeyLog
    private let names: Names

    init(_ session: Session, _ keyLog: KeyLog, _ names: Names) {
        self.session = session
        self.keyLog = keyLog
        self.names = names
    }

    public func list(cursor: String? = nil) async throws -> Page<Contact> { try await page("friend", cursor, read: contactOf) }

    /// The name to show for a person in any list or message: this user's own name for them, else their display name. For contacts
    /// it is the present one.
    public nonisolated func nameOf(_ person: Person) -> String { names.of(person).name }

    /// Gives a contact a name of this user's own, for all their devices; the contact never sees it. Nil takes it back.
    public func rename(_ userId: UInt64, alias: String?) async throws -> Contact {
        try await uncancelled { [session, names] in
            let contact = try contactOf(await session.ask("PUT", "friend/\(userId)", body: bodyOf(["alias": alias ?? ""])))
            names.put(contact.person)
            return contact
        }
    }

    /// The names of all contacts as the server has them.
    func loadNames() async throws {
        try await names.load {
            var all: [Person] = []
            var cursor: String?
            // As many pages as a user's contacts can have.
            for _ in 1...Self.pagesMax {
                let page = try await self.page("friend", cursor, limit: Self.pageMax, read: contactOf)
                all += page.items.map(\.person)
                cursor = page.nextCursor
                if cursor == nil { break }
            }
            return all
        }
    }

    /// Those of other people.
    public func requests(cursor: String? = nil) async throws -> Page<ContactRequest> {
        try await page("friend-request", cursor) { item in
            ContactRequest(
                requestId: try item.needText("requestId"),
                person: try personOf(item.member("user")),
                message: item.text("message")
            )
        }
    }

    /// A link for people who want to become contacts. It names this user and the device list, so their apps verify both; without
    /// a list it does not.
    public func shareLink() async throws -> String {
        try await uncancelled { [session, keyLog] in
            let url = try await session.ask("POST", "share-token", body: [:]).needText("url")
            do {
                return url + (try await keyLog.shareFragment())
            } catch let error as CallsignError where error.code == CallsignError.LocalCode.keysUnavailable {
                return url
            }
        }
    }

    /// Whom a text leads to that the user has scanned, opened or pasted: a contact's link anywhere in it, or a user id. Throws
    /// `INVALID_QR` for any other text, and `MALFORMED` for a damaged link or another server's, before it asks for the name.
    public func open(_ text: String) async throws -> Opened {
        try await uncancelled { [self] in
            switch scanIn(text) {
            case nil:
                throw CallsignError(CallsignError.LocalCode.invalidQR, "The text has no link of a contact and no user id.")
            case .user(let userId):
                return .user(userId: userId, ContactAsk { try await self.request(userId, message: $0) })
            case .link(let link):
                let shared = try await keyLog.openShared(link.fragment)
                let reply = try await session.ask("POST", "share-token/resolve", body: bodyOf(["token": link.token]))
                return .link(
                    displayName: reply.text("displayName") ?? "",
                    relation: reply.text("relation"),
                    isNamed: shared != nil,
                    ContactAsk { try await self.requestBy(link, $0) }
                )
            }
        }
    }

    /// Asks a person to become a contact, or accepts what they have asked.
    @discardableResult public func request(_ userId: UInt64, message: String? = nil) async throws -> RequestStatus {
        let body = bodyOf(["targetUserId": "\(userId)", "message": message])
        return try statusOf(await session.ask("POST", "friend-request/by-id", body: body))
    }

    /// The same by an email address that its owner has opened to searches.
    @discardableResult public func requestByEmail(_ email: String, message: String? = nil) async throws -> RequestStatus {
        try statusOf(await session.ask("POST", "friend-request", body: bodyOf(["email": email, "message": message])))
    }

    /// The same by a link. One that names another user than the server does is refused with `KEYS_REFUSED`.
    @discardableResult public func requestByLink(_ link: String, message: String? = nil) async throws -> RequestStatus {
        guard let link = contactLinkIn(link) else { throw CallsignError("MALFORMED", "That is no link of a contact.") }
        return try await requestBy(link, message)
    }

    private func requestBy(_ link: ContactLink, _ message: String?) async throws -> RequestStatus {
        try await uncancelled { [self] in
            let person = try await keyLog.openShared(link.fragment)?.person
            // Before the server hears of it: an app that ends now still knows whom to expect.
            if let person { try await keyLog.expect(person) }
            let body = bodyOf(["token": link.token, "message": message])
            let reply = try await session.ask("POST", "friend-request/by-token", body: body)
            if let person { try await assertNamed(person, reply) }
            return try statusOf(reply)
        }
    }

    /// Accepts what the user has asked.
    public func accept(_ userId: UInt64) async throws { try await post("friend-request/accept", userId) }

    /// They do not hear of it.
    public func decline(_ userId: UInt64) async throws { try await post("friend-request/decline", userId) }

    /// Takes back what this user has asked them.
    public func cancel(_ userId: UInt64) async throws { try await post("friend-request/cancel", userId) }

    public func remove(_ userId: UInt64) async throws { _ = try await session.request("DELETE", "friend/\(userId)") }

    /// They do not hear of it.
    public func block(_ userId: UInt64) async throws { try await post("block", userId) }

    public func unblock(_ userId: UInt64) async throws { _ = try await session.request("DELETE", "block/\(userId)") }

    /// Tells the app's moderators about a user, who never hears of it; returns the report's id. `reason` is one of
    /// `reportReasons`, `callId` names a call with them.
    @discardableResult public func report(
        _ userId: UInt64, reason: String, text: String? = nil, callId: String? = nil
    ) async throws -> String {
        let named = bodyOf(["userId": "\(userId)", "reason": reason, "text": text, "callId": callId])
        return try await session.ask("POST", "report", body: named).needText("reportId")
    }

    /// In the order to show them in.
    public func reportReasons() async throws -> [ReportReason] {
        try await session.ask("GET", "report/reasons").members("items").map {
            ReportReason(reason: try $0.needText("reason"), title: try $0.needText("title"))
        }
    }

    /// Sixty digits that both people compare, to be sure of one another's devices.
    public func comparisonCode(_ userId: UInt64) async throws -> String {
        try await uncancelled { [keyLog] in try await keyLog.codeWith(userId) }
    }

    /// The person in front of the screen goes on with a contact's new keys: `userId` and `listHash` are those of a `KEYS_RESET`.
    /// It holds for these keys alone. Throws `KEYS_RESET` where newer ones are asked about.
    public func acceptKeys(_ userId: UInt64, listHash: String) async throws {
        try await uncancelled { [keyLog] in try await keyLog.acceptKeys(userId, listHash: listHash) }
    }

    private func post(_ operation: String, _ userId: UInt64) async throws {
        _ = try await session.request("POST", operation, body: bodyOf(["userId": "\(userId)"]))
    }

    private func page<Item: Sendable>(
        _ operation: String, _ cursor: String?, limit: Int? = nil, read: ([String: JSONValue]) throws -> Item
    ) async throws -> Page<Item> {
        let members = [limit.map { "limit=\($0)" }, cursor.map { "cursor=\(escaped($0))" }].compactMap { $0 }
        let query = members.isEmpty ? "" : "?\(members.joined(separator: "&"))"
        let reply = try await session.ask("GET", operation + query)
        return Page(items: try reply.members("items").map(read), nextCursor: reply.text("nextCursor"))
    }

    private func assertNamed(_ person: ListedPerson, _ reply: [String: JSONValue]) async throws {
        let userId = try personOf(reply.member("user")).userId
        if userId == person.userId { return }
        if try statusOf(reply) == .accepted {
            try await remove(userId)
        } else {
            let body = bodyOf(["requestId": try reply.needText("requestId")])
            _ = try await session.request("POST", "friend-request/cancel", body: body)
        }
        let sentence = "The server names another user than the link does. They were not added."
        throw CallsignError(CallsignError.LocalCode.keysRefused, sentence, members: bodyOf(["userId": "\(userId)"]))
    }

    private static let pageMax = 200
    private static let pagesMax = 10
}

private func contactOf(_ item: [String: JSONValue]) throws -> Contact {
    var person = try personOf(item)
    person.isContact = true
    return Contact(person: person, devices: item.number("devices") ?? 0)
}

private func statusOf(_ reply: [String: JSONValue]) throws -> RequestStatus {
    guard let status: RequestStatus = namedOrNil(reply.text("status")) else { throw answerInvalid() }
    return status
}

/// As a query may have it.
private func escaped(_ text: String) -> String {
    text.utf8.map { octet in
        let letter = octet | 0x20
        let isPlain = (0x30...0x39).contains(octet) || (0x61...0x7a).contains(letter) || "-._~".utf8.contains(octet)
        return isPlain ? String(Unicode.Scalar(octet)) : "%" + hex([octet]).uppercased()
    }.joined()
}
