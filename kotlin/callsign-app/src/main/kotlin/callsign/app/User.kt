package callsign.app

import kotlinx.serialization.json.JsonObject

/**
 * The user who is signed in. [restriction] is the code by which most operations refuse this app: `DEVICE_NOT_LISTED` until a
 * device of the user's list has put this one on it. Then [email] and [phone] are null, too.
 */
public data class User(
    public val userId: ULong,
    public val displayName: String,
    public val email: String? = null,
    public val phone: String? = null,
    public val restriction: String? = null,
)

/**
 * A person. [displayName] is their own choice, [alias] this user's own name for them. Where [isContact] is false they are a stranger,
 * who may have any name: say so on the screen. It is null until that is known.
 */
public data class Person(
    public val userId: ULong,
    public val displayName: String,
    public val alias: String? = null,
    public val isContact: Boolean? = null,
) {
    /** For screens. */
    public val name: String get() = alias ?: displayName
}

/** Numbers for the badge of the app. */
public data class Badge(public val total: Int, public val friendRequests: Int, public val missedCalls: Int)

internal fun userOf(members: JsonObject): User = User(
    members.needId("userId"),
    members.text("displayName").orEmpty(),
    members.text("email"),
    members.text("phone"),
    members.text("restriction"),
)

internal fun personOf(members: JsonObject): Person =
    Person(members.needId("userId"), members.text("displayName").orEmpty(), members.text("alias"))

/** The caller in an invitation, or in the record of a call that rings. */
internal fun callerIn(members: JsonObject): Person = Person(
    members.needId("callerId"),
    members.text("displayName") ?: members.text("callerName").orEmpty(),
    members.text("alias"),
    members.text("isContact")?.let { it == "true" },
)

internal fun badgeOf(members: JsonObject): Badge {
    fun count(name: String) = members.needNumber(name).toInt()
    return Badge(count("total"), count("friendRequests"), count("missedCalls"))
}
