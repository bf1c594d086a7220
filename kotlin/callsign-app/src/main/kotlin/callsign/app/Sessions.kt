/** Where the user is signed in, and the sign-in that waits for their answer. */
package callsign.app

import callsign.verify.encodeBase64
import callsign.verify.signInAnswerMessage
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * A session of the user. [network] is the prefix of its client's network, such as `203.0.113.0/24`. [userAgent] is the client's
 * own text: decide nothing by it. [proof] is how the user signed in: `otp`, `social`, `apple` or `passkey`. [isCurrent]: it is this
 * app's.
 */
public data class UserSession(
    public val id: String,
    public val createdAtMs: Long,
    public val lastUsedAtMs: Long,
    public val endsAtMs: Long,
    public val network: String?,
    public val userAgent: String,
    public val proof: String,
    public val device: Device?,
    public val isCurrent: Boolean,
)

/**
 * A sign-in that waits for the user. [signInCode] is twenty digits, which the screen that waits shows, too. [method] is `email`
 * or `phone`: by which kind of address it is; or `server`: by a token of the app's backend. Without an answer it goes through at [untilMs].
 */
public data class SignInToAnswer(
    public val id: String,
    public val signInCode: String,
    public val method: String,
    public val userAgent: String,
    public val network: String?,
    public val createdAtMs: Long,
    public val untilMs: Long,
)

public class Sessions internal constructor(
    private val session: Session,
    private val device: RegisteredDevice,
    private val operations: Operations,
) {
    /** Those that last, newest first. */
    public suspend fun list(): List<UserSession> = session.ask("GET", "user/sessions").members("items").map(::sessionOf)

    /** Throws `SESSION_NOT_FOUND` where it has ended already. To end this app's own, sign out. */
    public suspend fun end(id: String) {
        session.request("DELETE", "user/sessions/$id")
    }

    /** Ends all but this app's own. */
    public suspend fun endOthers() {
        session.request("DELETE", "user/sessions")
    }

    /** The sign-in that waits for an answer, if there is one. */
    public suspend fun waiting(): List<SignInToAnswer> =
        session.ask("GET", "user/waiting-sign-ins").members("items").map(::signInOf)

    /**
     * Lets a sign-in through, or refuses it, signed by this device: the user has compared the code on both screens. Throws
     * `SIGN_IN_NOT_FOUND` where it waits no more.
     */
    public suspend fun answer(id: String, approve: Boolean): Unit = operations.run {
        val octets = octetsOfId(id) ?: throw CallsignException("MALFORMED", "That is no id of a sign-in.")
        val signature = device.keys.sign(signInAnswerMessage(device.userId, octets, approve))
        val answer = mapOf("approve" to JsonPrimitive(approve), "signature" to JsonPrimitive(encodeBase64(signature)))
        session.request("POST", "user/waiting-sign-ins/$id", JsonObject(answer))
    }

    private fun sessionOf(item: JsonObject): UserSession {
        val isCurrent = item.flag("isCurrent")
        return UserSession(
            item.needText("id"),
            item.needTimeMs("createdAt"),
            item.needTimeMs("lastUsedAt"),
            item.needTimeMs("endsAt"),
            item.text("network"),
            item.needText("userAgent"),
            item.needText("proof"),
            (item["device"] as? JsonObject)?.let { deviceOf(it, isCurrent) },
            isCurrent,
        )
    }

    private fun signInOf(item: JsonObject) = SignInToAnswer(
        item.needText("id"),
        item.needText("signInCode"),
        item.needText("method"),
        item.needText("userAgent"),
        item.text("network"),
        item.needTimeMs("createdAt"),
        item.needTimeMs("until"),
    )
}
