/** The user's contacts: found by link, id or address, asked, accepted, removed, blocked. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.verify.ListedPerson
import kotlinx.serialization.json.JsonObject

/** A contact; [devices] is how many they have. */
public data class Contact(public val person: Person, public val devices: Int)

/** A person who asks this user, or whom this user has asked. */
public data class ContactRequest(public val requestId: String, public val person: Person, public val message: String?)

/** Why a user is reported; [title] is English, for apps without words of their own. */
public data class ReportReason(public val reason: String, public val title: String)

/** A part of a list, newest first; [nextCursor] is null behind the last. */
public data class Page<Item>(public val items: List<Item>, public val nextCursor: String?)

/** What became of a request. By an address it is `SUBMITTED`, also where no user has it. */
public enum class RequestStatus { PENDING, ACCEPTED, SUBMITTED }

/** Whom a text leads to: show it, and ask for them only once the user wants it. */
public sealed interface Opened {
    /** Asks them to become a contact, or accepts what they have asked. */
    public suspend fun request(message: String? = null): RequestStatus

    /**
     * The owner of a link. [relation] is how this user knows them already. [isNamed]: the link itself names the person, so that
     * no server can put another one in their place.
     */
    public class Link internal constructor(
        public val displayName: String,
        public val relation: String?,
        public val isNamed: Boolean,
        private val ask: suspend (String?) -> RequestStatus,
    ) : Opened {
        /** Throws `KEYS_REFUSED` where the link names another user than the server does. */
        override suspend fun request(message: String?): RequestStatus = ask(message)
    }

    /** An id says no name: the server is asked about it with [request] alone. */
    public class User internal constructor(
        public val userId: ULong,
        private val ask: suspend (String?) -> RequestStatus,
    ) : Opened {
        override suspend fun request(message: String?): RequestStatus = ask(message)
    }
}

public class Contacts internal constructor(
    private val session: Session,
    private val keyLog: KeyLog,
    private val names: Names,
    private val operations: Operations,
) {
    public suspend fun list(cursor: String? = null): Page<Contact> = page("friend", cursor, read = ::contactOf)

    /**
     * The name to show for a person in any list or message: this user's own name for them, else their display name. For contacts it
     * is the present one.
     */
    public fun nameOf(person: Person): String = names.of(person).name

    /** Gives a contact a name of this user's own, for all their devices; the contact never sees it. Null takes it back. */
    public suspend fun rename(userId: ULong, alias: String?): Contact = operations.run {
        val contact = contactOf(session.ask("PUT", "friend/$userId", bodyOf(mapOf("alias" to alias.orEmpty()))))
        names.put(contact.person)
        contact
    }

    /** The names of all contacts as the server has them. */
    internal suspend fun loadNames(): Unit = names.load {
        val all = ArrayList<Person>()
        var cursor: String? = null
        // As many pages as a user's contacts can have.
        for (turn in 1..PAGES_MAX) {
            val page = page("friend", cursor, PAGE_MAX, ::contactOf)
            all += page.items.map { it.person }
            cursor = page.nextCursor ?: break
        }
        all
    }

    /** Those of other people. */
    public suspend fun requests(cursor: String? = null): Page<ContactRequest> = page("friend-request", cursor) { item ->
        ContactRequest(item.needText("requestId"), personOf(item.member("user")), item.text("message"))
    }

    /**
     * A link for people who want to become contacts. It names this user and the device list, so their apps verify both;
     * without a list it does not.
     */
    public suspend fun shareLink(): String = operations.run {
        val url = session.ask("POST", "share-token", JsonObject(emptyMap())).needText("url")
        try {
            url + keyLog.shareFragment()
        } catch (error: CallsignException) {
            if (error.code != LocalCode.KEYS_UNAVAILABLE) throw error
            url
        }
    }

    /**
     * Whom a text leads to that the user has scanned, opened or pasted: a contact's link anywhere in it, or a user id. Throws
     * `INVALID_QR` for any other text, and `MALFORMED` for a damaged link or another server's, before it asks for the name.
     */
    public suspend fun open(text: String): Opened = operations.run {
        when (val scan = scanIn(text)) {
            null -> throw CallsignException(LocalCode.INVALID_QR, "The text has no link of a contact and no user id.")
            is Scan.User -> Opened.User(scan.userId) { request(scan.userId, it) }
            is Scan.Link -> {
                val shared = keyLog.openShared(scan.fragment)
                val reply = session.ask("POST", "share-token/resolve", bodyOf(mapOf("token" to scan.token)))
                Opened.Link(reply.text("displayName").orEmpty(), reply.text("relation"), shared != null) { requestBy(scan, it) }
            }
        }
    }

    /** Asks a person to become a contact, or accepts what they have asked. */
    public suspend fun request(userId: ULong, message: String? = null): RequestStatus =
        statusOf(session.ask("POST", "friend-request/by-id", bodyOf(mapOf("targetUserId" to "$userId", "message" to message))))

    /** The same by an email address that its owner has opened to searches. */
    public suspend fun requestByEmail(email: String, message: String? = null): RequestStatus =
        statusOf(session.ask("POST", "friend-request", bodyOf(mapOf("email" to email, "message" to message))))

    /** The same by a link. One that names another user than the server does is refused with `KEYS_REFUSED`. */
    public suspend fun requestByLink(link: String, message: String? = null): RequestStatus =
        requestBy(contactLinkIn(link) ?: throw CallsignException("MALFORMED", "That is no link of a contact."), message)

    private suspend fun requestBy(link: Scan.Link, message: String?): RequestStatus = operations.run {
        val person = keyLog.openShared(link.fragment)?.person
        // Before the server hears of it: an app that ends now still knows whom to expect.
        if (person != null) keyLog.expect(person)
        val body = bodyOf(mapOf("token" to link.token, "message" to message))
        val reply = session.ask("POST", "friend-request/by-token", body)
        if (person != null) assertNamed(person, reply)
        statusOf(reply)
    }

    /** Accepts what the user has asked. */
    public suspend fun accept(userId: ULong): Unit = post("friend-request/accept", userId)

    /** They do not hear of it. */
    public suspend fun decline(userId: ULong): Unit = post("friend-request/decline", userId)

    /** Takes back what this user has asked them. */
    public suspend fun cancel(userId: ULong): Unit = post("friend-request/cancel", userId)

    public suspend fun remove(userId: ULong) {
        session.request("DELETE", "friend/$userId")
    }

    /** They do not hear of it. */
    public suspend fun block(userId: ULong): Unit = post("block", userId)

    public suspend fun unblock(userId: ULong) {
        session.request("DELETE", "block/$userId")
    }

    /**
     * Tells the app's moderators about a user, who never hears of it; returns the report's id. [reason] is one of
     * [reportReasons], [callId] names a call with them.
     */
    public suspend fun report(userId: ULong, reason: String, text: String? = null, callId: ULong? = null): String {
        val named = mapOf("userId" to "$userId", "reason" to reason, "text" to text, "callId" to callId?.toString())
        return session.ask("POST", "report", bodyOf(named)).needText("reportId")
    }

    /** In the order to show them in. */
    public suspend fun reportReasons(): List<ReportReason> = session.ask("GET", "report/reasons").members("items").map {
        ReportReason(it.needText("reason"), it.needText("title"))
    }

    /** Sixty digits that both people compare, to be sure of one another's devices. */
    public suspend fun comparisonCode(userId: ULong): String = operations.run { keyLog.codeWith(userId) }

    /**
     * The person in front of the screen goes on with a contact's new keys: [userId] and [listHash] are those of a `KEYS_RESET`.
     * It holds for these keys alone. Throws `KEYS_RESET` where newer ones are asked about.
     */
    public suspend fun acceptKeys(userId: ULong, listHash: String): Unit =
        operations.run { keyLog.acceptKeys(userId, listHash) }

    private suspend fun post(operation: String, userId: ULong) {
        session.request("POST", operation, bodyOf(mapOf("userId" to "$userId")))
    }

    private fun contactOf(item: JsonObject) =
        Contact(personOf(item).copy(isContact = true), item.number("devices")?.toInt() ?: 0)

    private suspend fun <Item> page(
        operation: String,
        cursor: String?,
        limit: Int? = null,
        read: (JsonObject) -> Item,
    ): Page<Item> {
        val query = listOfNotNull(
            limit?.let { "limit=$it" },
            cursor?.let { "cursor=${java.net.URLEncoder.encode(it, "UTF-8")}" },
        ).joinToString("&")
        val reply = session.ask("GET", if (query.isEmpty()) operation else "$operation?$query")
        return Page(reply.members("items").map(read), reply.text("nextCursor"))
    }

    private suspend fun assertNamed(person: ListedPerson, reply: JsonObject) {
        val userId = personOf(reply.member("user")).userId
        if (userId == person.userId) return
        if (statusOf(reply) == RequestStatus.ACCEPTED) remove(userId)
        else session.request("POST", "friend-request/cancel", bodyOf(mapOf("requestId" to reply.needText("requestId"))))
        val sentence = "The server names another user than the link does. They were not added."
        throw CallsignException(LocalCode.KEYS_REFUSED, sentence, members = bodyOf(mapOf("userId" to "$userId")))
    }

    private fun statusOf(reply: JsonObject): RequestStatus =
        namedOrNull<RequestStatus>(reply.text("status")) ?: throw answerInvalid()

    private companion object {
        const val PAGE_MAX = 200
        const val PAGES_MAX = 10
    }
}
