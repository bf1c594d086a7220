import CallsignVerify

/// The user who is signed in. `restriction` is the code by which most operations refuse this app: `DEVICE_NOT_LISTED` until a
/// device of the user's list has put this one on it. Then `email` and `phone` are nil, too.
public struct User: Sendable, Equatable {
    public var userId: UInt64
    public var displayName: String
    public var email: String?
    public var phone: String?
    public var restriction: String?

    public init(
        userId: UInt64,
        displayName: String,
        email: String? = nil,
        phone: String? = nil,
        restriction: String? = nil
    ) {
        self.userId = userId
        self.displayName = displayName
        self.email = email
        self.phone = phone
        self.restriction = restriction
    }
}

/// A person. `displayName` is their own choice, `alias` this user's own name for them. Where `isContact` is false they are a
/// stranger, who may have any name: say so on the screen. It is nil until that is known.
public struct Person: Sendable, Equatable {
    public var userId: UInt64
    public var displayName: String
    public var alias: String?
    public var isContact: Bool?

    public init(userId: UInt64, displayName: String, alias: String? = nil, isContact: Bool? = nil) {
        self.userId = userId
        self.displayName = displayName
        self.alias = alias
        self.isContact = isContact
    }

    /// For screens.
    public var name: String { alias ?? displayName }
}

/// Numbers for the badge of the app.
public struct Badge: Sendable, Equatable {
    public var total: Int
    public var friendRequests: Int
    public var missedCalls: Int

    public init(total: Int, friendRequests: Int, missedCalls: Int) {
        self.total = total
        self.friendRequests = friendRequests
        self.missedCalls = missedCalls
    }
}

func userOf(_ members: [String: JSONValue]) throws -> User {
    User(
        userId: try members.needId("userId"),
        displayName: members.text("displayName") ?? "",
        email: members.text("email"),
        phone: members.text("phone"),
        restriction: members.text("restriction")
    )
}

func personOf(_ members: [String: JSONValue]) throws -> Person {
    Person(
        userId: try members.needId("userId"),
        displayName: members.text("displayName") ?? "",
        alias: members.text("alias")
    )
}

/// The caller in an invitation, or in the record of a call that rings.
func callerIn(_ members: [String: JSONValue]) throws -> Person {
    Person(
        userId: try members.needId("callerId"),
        displayName: members.text("displayName") ?? members.text("callerName") ?? "",
        alias: members.text("alias"),
        isContact: members.text("isContact").map { $0 == "true" }
    )
}

func badgeOf(_ members: [String: JSONValue]) throws -> Badge {
    Badge(
        total: try members.needNumber("total"),
        friendRequests: try members.needNumber("friendRequests"),
        missedCalls: try members.needNumber("missedCalls")
    )
}
