/** The user's profile and login methods. */
package callsign.app

import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * A login method. [kind] is `email`, `phone`, `social` or `passkey`. [value] is the address; of an identity at a provider, the address
 * that the provider named. A passkey has a [label] from its user, and is [backedUp] where it is synced to other devices.
 */
public data class LoginMethod(
    public val id: ULong,
    public val kind: String,
    public val value: String?,
    public val provider: String?,
    public val label: String?,
    public val backedUp: Boolean?,
    public val verified: Boolean,
    public val primary: Boolean,
    public val addedAtMs: Long,
    public val lastUsedAtMs: Long,
)

/** Most of it takes a fresh proof of who the user is: see [Callsign.proofNeeded]. */
public class Account internal constructor(private val session: Session) {
    public suspend fun read(): User = userOf(session.ask("GET", "user"))

    /** [changes] are members of `PUT user`. A new address counts once its code is confirmed: [confirm] is asked for each. */
    public suspend fun update(changes: JsonObject, confirm: (suspend (CodeQuestion) -> String)? = null): User {
        val reply = session.ask("PUT", "user", changes)
        var newest = userOf(reply.member("user"))
        val pending = if ("pending" in reply) reply.members("pending") else emptyList()
        if (confirm != null) for (challenge in pending) newest = verify(codeSentOf(challenge), confirm)
        return newest
    }

    public suspend fun loginMethods(): List<LoginMethod> = methodsIn(session.ask("GET", "user/login-methods"))

    /** An email address or phone number, which [confirm] is asked the code of; [country] is for a number without calling code. */
    public suspend fun addLoginMethod(
        address: String,
        country: String? = null,
        confirm: suspend (CodeQuestion) -> String,
    ) {
        val kind = if ('@' in address) "email" else "phone"
        val method = mapOf("kind" to kind, "value" to address, "country" to country)
        verify(codeSentOf(session.ask("POST", LOGIN_METHODS, bodyOf(method))), confirm)
    }

    /** What a provider has signed. */
    public suspend fun addProvider(provider: String, idToken: String, nonce: String? = null) {
        val method = mapOf("kind" to "social", "provider" to provider, "idToken" to idToken, "nonce" to nonce)
        session.request("POST", LOGIN_METHODS, bodyOf(method))
    }

    public suspend fun setPrimaryLoginMethod(id: ULong): List<LoginMethod> =
        methodsIn(session.ask("PUT", "$LOGIN_METHODS/primary", bodyOf(mapOf("id" to "$id"))))

    public suspend fun removeLoginMethod(id: ULong) {
        session.request("DELETE", "$LOGIN_METHODS/$id")
    }

    /** All that the server has of the account. Five a day. */
    public suspend fun export(): JsonObject = session.ask("GET", "user/export")

    /** The account ends, unless the user signs in again before the time that this gives. */
    public suspend fun delete(): Long =
        session.ask("DELETE", "user", JsonObject(mapOf("confirm" to JsonPrimitive(true)))).needTimeMs("erasesAt")

    private suspend fun verify(sent: CodeSent, confirm: suspend (CodeQuestion) -> String): User =
        confirmed(session, sent, confirm) { challengeId, otp ->
            userOf(session.ask("POST", "verify", bodyOf(mapOf("challengeId" to challengeId, "otp" to otp))).member("user"))
        }

    private fun methodsIn(reply: JsonObject): List<LoginMethod> = reply.members("items").map(::loginMethodOf)

    private companion object {
        const val LOGIN_METHODS = "user/login-methods"
    }
}

internal fun loginMethodOf(members: JsonObject) = LoginMethod(
    members.needId("id"),
    members.needText("kind"),
    members.text("value"),
    members.text("provider"),
    members.text("label"),
    members.text("backedUp")?.let { it == "true" },
    members.flag("verified"),
    members.flag("primary"),
    members.needTimeMs("addedAt"),
    members.needTimeMs("lastUsedAt"),
)
