/** One sign-in: its tokens, kept before they are used, and requests with them. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.verify.LogException
import callsign.verify.decodeBase64
import java.util.UUID
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.SharedFlow
import kotlinx.coroutines.flow.asSharedFlow
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/** A code is on its way to [sentTo]. It has [otpLength] digits; another one can be had after [resendInS] seconds. */
public class CodeSent internal constructor(
    public val challengeId: String,
    public val sentTo: String,
    public val otpLength: Int,
    public val resendInS: Long,
)

internal fun codeSentOf(challenge: JsonObject) = CodeSent(
    challenge.needText("challengeId"),
    challenge.needText("sentTo"),
    challenge.needNumber("otpLength").toInt(),
    challenge.needNumber("resendIn"),
)

/**
 * The session of one user on [server]. Safe to share between coroutines; one for each [AppStorage]. Made by [open].
 */
public class Session private constructor(
    private val server: Server,
    private val storage: AppStorage,
    @Volatile private var kept: Kept?,
) {
    /** While this device signs out: that the server ends the session is no news then, whichever way it comes first. */
    @Volatile
    private var isLeaving = false
    @Volatile
    private var stepUp: StepUp? = null
    private val refreshing = Mutex()
    private val beginning = Mutex()
    private val endings = MutableSharedFlow<CallsignException>(extraBufferCapacity = 1)

    /** The server has ended the session. A sign-out by [logout] is not among them. */
    public val ended: SharedFlow<CallsignException> = endings.asSharedFlow()

    /** The user who is signed in. */
    public val userId: ULong? get() = signedIn?.userId

    /** The session's id, as `user/sessions` has it. */
    internal val id: String? get() = signedIn?.sessionId

    /** 32 octets, which the device signs to show that it has its signing key (`possessionMessage`). */
    public val challenge: ByteArray? get() = signedIn?.let { decodeBase64(it.challenge) }

    /** Asks for a code to either kind of address. */
    internal suspend fun requestCodeFor(address: String, options: SignInOptions): CodeSent {
        val (displayName, country, attestation) = listOf(options.displayName, options.country, options.attestation)
        val members = mapOf("displayName" to displayName, "country" to country, "attestation" to attestation)
        return codeSent("login", members + ("identifier" to address))
    }

    /** Asks for a code to an email address. [displayName] counts for a newcomer. */
    public suspend fun requestCode(email: String, displayName: String? = null): CodeSent =
        codeSent("login", mapOf("email" to email, "displayName" to displayName))

    /** Asks for a code to a phone number; [country], two letters, is for a number without calling code. */
    public suspend fun requestCodeByPhone(phone: String, country: String? = null, displayName: String? = null): CodeSent =
        codeSent("login", mapOf("phone" to phone, "country" to country, "displayName" to displayName))

    /** Sends another code of this challenge; the last one is void then. [attestation] is what the operator's check asks of the app. */
    public suspend fun resendCode(challengeId: String, attestation: String? = null): CodeSent =
        codeSent("resend-otp", mapOf("challengeId" to challengeId, "attestation" to attestation))

    /**
     * Signs in by a code. `OTP_INVALID` has `attemptsLeft` among its members. `SIGN_IN_WAITING` has `waitingId`: a device of the
     * user has to approve the sign-in.
     */
    public suspend fun verifyCode(challengeId: String, otp: String): User = verifyCode(challengeId, otp, emptyMap())

    /** [proofs] are `device` and `waitingId`, where this app has them. */
    internal suspend fun verifyCode(challengeId: String, otp: String, proofs: Map<String, JsonElement>): User {
        val code = bodyOf(mapOf("challengeId" to challengeId, "otp" to otp, "refreshToken" to kept?.refreshToken))
        return begin("verify-login", JsonObject(code + proofs))
    }

    /** Signs in by a sign-in that has waited. Throws `SIGN_IN_WAITING` while it does, `SIGN_IN_REFUSED` and `SIGN_IN_GONE`. */
    internal suspend fun fetchWaiting(waitingId: String): User =
        begin("login/waiting", bodyOf(mapOf("waitingId" to waitingId)))

    /** Signs in by what an identity provider has signed, such as Google's ID token. */
    public suspend fun verifyProvider(
        provider: String,
        idToken: String,
        nonce: String? = null,
        displayName: String? = null,
    ): User {
        val members = mapOf("platform" to provider, "idToken" to idToken, "nonce" to nonce, "displayName" to displayName)
        return begin("platform-login", bodyOf(members))
    }

    /** Signs in by a token of the app's backend; [device] shows that this is a listed device of its user. */
    internal suspend fun verifyToken(token: String, device: JsonObject?): User {
        val claim = mapOf("verified" to JsonPrimitive(true), "signInToken" to JsonPrimitive(token))
        return begin("login", JsonObject(if (device == null) claim else claim + ("device" to device)))
    }

    /** For the authenticator: any passkey of this server. */
    internal suspend fun passkeyOptions(): JsonObject =
        (server.request("POST", "passkey/options") as? JsonObject ?: throw answerInvalid()).member("options")

    internal suspend fun verifyPasskey(credential: JsonObject): User =
        begin("login/passkey", JsonObject(mapOf("credential" to credential)))

    /** Proofs that operations are refused without come from [stepUp]: each such operation is repeated once. */
    internal fun proveBy(stepUp: StepUp) {
        this.stepUp = stepUp
    }

    /**
     * A request of the user who is signed in, as [Server.request]. Throws `SIGNED_OUT` without one. Expired tokens are renewed
     * once on the way.
     */
    public suspend fun request(
        method: String,
        operation: String,
        body: JsonObject? = null,
        headers: Map<String, String> = emptyMap(),
    ): JsonElement? {
        val key = if (method == "POST") mapOf("idempotency-key" to UUID.randomUUID().toString()) else emptyMap()
        val sessionId = id
        val prover = stepUp
        var hasRefreshed = false
        var hasProven = false
        while (true) {
            val token = accessToken()
            val proofs = prover?.count
            try {
                return server.request(method, operation, body, key + headers + ("authorization" to "Bearer $token"))
            } catch (error: CallsignException) {
                if (!hasRefreshed && error.code == "TOKEN_EXPIRED") {
                    refresh(token)
                    hasRefreshed = true
                } else if (!hasProven && prover != null && error.code == "STEP_UP_REQUIRED") {
                    // Another operation's proof may have come while this one was on its way.
                    hasProven = prover.count == proofs
                    if (hasProven) prover.prove(error)
                    if (id != sessionId) throw signedOut()
                    hasRefreshed = false
                } else {
                    if (error.code in OVER_CODES && signedIn?.accessToken == token) end(error)
                    throw error
                }
            }
        }
    }

    /** A token that is good for a while, for a connection. Throws `SIGNED_OUT`, or what the renewal of a spent one throws. */
    public suspend fun accessToken(): String {
        val held = assertSignedIn()
        if (server.nowMs() < held.renewAtMs) return held.accessToken
        try {
            refresh(held.accessToken)
        } catch (error: CallsignException) {
            // The token at hand is still good.
            if (signedIn == null || server.nowMs() >= held.expiresAtMs) throw error
        }
        return assertSignedIn().accessToken
    }

    /** The header for a request to this address; null without a session, and for any other server than its own. */
    internal suspend fun authorizationAt(url: String): String? = try {
        if (server.isAt(url)) "Bearer ${accessToken()}" else null
    } catch (_: CallsignException) {
        null
    }

    /** Ends the session on the server. Throws, and leaves it as it is, where the server can't be asked. */
    public suspend fun logout(allDevices: Boolean = false) {
        isLeaving = true
        try {
            request("POST", "logout", JsonObject(mapOf("allDevices" to JsonPrimitive(allDevices))))
        } catch (error: CallsignException) {
            if (signedIn != null) throw error
        } finally {
            isLeaving = false
        }
        if (signedIn != null) forget()
    }

    /** A request of [request] whose answer is an object. */
    internal suspend fun ask(
        method: String,
        operation: String,
        body: JsonObject? = null,
        headers: Map<String, String> = emptyMap(),
    ): JsonObject = request(method, operation, body, headers) as? JsonObject ?: throw answerInvalid()

    /** Gets new tokens in place of the pair with this access token, which the server calls expired. */
    internal suspend fun renew(accessToken: String): Unit = refresh(accessToken)

    /** The server has ended the session, and said so elsewhere than in an answer to a request. */
    internal suspend fun endBy(error: CallsignException) {
        if (signedIn != null) end(error)
    }

    private val signedIn: Kept.SignedIn? get() = kept as? Kept.SignedIn

    private fun assertSignedIn(): Kept.SignedIn = signedIn ?: throw signedOut()

    private suspend fun codeSent(operation: String, members: Map<String, String?>): CodeSent {
        // By the last token the server knows this app's user: strangers can't use up their codes.
        return codeSentOf(replyOf(operation, bodyOf(members + ("refreshToken" to kept?.refreshToken))))
    }

    private suspend fun replyOf(operation: String, body: JsonObject): JsonObject =
        server.request("POST", operation, body) as? JsonObject ?: throw answerInvalid()

    /**
     * A caller that gives up does not take the new session with it. Throws `ALREADY_SIGNED_IN` where a sign-in that has waited came
     * before.
     */
    private suspend fun begin(operation: String, body: JsonObject): User = beginning.withLock {
        if (signedIn != null) {
            val sentence = "A user is signed in already. Sign out first."
            throw CallsignException(LocalCode.ALREADY_SIGNED_IN, sentence)
        }
        withContext(NonCancellable) {
            val reply = replyOf(operation, body)
            val user = userOf(reply.member("user"))
            take(user.userId, reply)
            user
        }
    }

    /** Tokens are in the storage before anything is done with them. */
    private suspend fun take(userId: ULong, pair: JsonObject) {
        val expiresInS = pair.number("expiresIn") ?: throw answerInvalid()
        val expiresAtMs = server.nowMs() + 1_000 * expiresInS
        val taken = Kept.SignedIn(
            userId,
            pair.needText("sessionId"),
            pair.text("accessToken") ?: throw answerInvalid(),
            pair.text("refreshToken") ?: throw answerInvalid(),
            pair.text("challenge") ?: throw answerInvalid(),
            expiresAtMs - 200 * expiresInS,
            expiresAtMs,
        )
        storage.writeText(SESSION, taken.toText())
        kept = taken
    }

    /** Gets a new pair in place of the one with this access token, once for all who wait for it. */
    private suspend fun refresh(accessToken: String): Unit = refreshing.withLock {
        val held = assertSignedIn()
        if (held.accessToken != accessToken) return
        try {
            // A pair that is lost between the answer and the storage would end the session.
            withContext(NonCancellable) {
                take(held.userId, replyOf("refresh-token", bodyOf(mapOf("refreshToken" to held.refreshToken))))
            }
        } catch (error: CallsignException) {
            if (error.code in OVER_CODES) end(error)
            throw error
        }
    }

    /** Signed out even where the storage fails: the next start then hears it from the server. */
    private suspend fun end(error: CallsignException) {
        try {
            forget()
        } catch (cancelled: CancellationException) {
            throw cancelled
        } catch (_: Exception) {
            // Nothing is left to do.
        }
        if (!isLeaving) endings.tryEmit(error)
    }

    /** The refresh token stays, for the next sign-in. */
    private suspend fun forget() {
        val signedOut = Kept.SignedOut(assertSignedIn().refreshToken)
        kept = signedOut
        stepUp?.giveUp(signedOut())
        storage.writeText(SESSION, signedOut.toText())
    }

    public companion object {
        /** Goes on with the session in the storage, if there is one. Throws `STORAGE_CORRUPT`, and what the storage throws. */
        public suspend fun open(server: Server, storage: AppStorage): Session =
            Session(server, storage, storage.readText(SESSION)?.let(::keptIn))

        private const val SESSION = "session"

        /** Codes by which the server ends the session (docs/protocol/sign-in.md, "Tokens"). */
        private val OVER_CODES = setOf(
            "TOKEN_MISSING",
            "TOKEN_INVALID",
            "SESSION_REVOKED",
            "REFRESH_TOKEN_INVALID",
            "REFRESH_TOKEN_REUSED",
        )
    }
}

private sealed interface Kept {
    val refreshToken: String

    class SignedIn(
        val userId: ULong,
        val sessionId: String,
        val accessToken: String,
        override val refreshToken: String,
        val challenge: String,
        val renewAtMs: Long,
        val expiresAtMs: Long,
    ) : Kept

    class SignedOut(override val refreshToken: String) : Kept
}

private fun Kept.toText(): String = when (this) {
    is Kept.SignedOut -> bodyOf(mapOf("refreshToken" to refreshToken))
    is Kept.SignedIn -> buildJsonObject {
        put("userId", JsonPrimitive("$userId"))
        put("sessionId", JsonPrimitive(sessionId))
        put("accessToken", JsonPrimitive(accessToken))
        put("refreshToken", JsonPrimitive(refreshToken))
        put("challenge", JsonPrimitive(challenge))
        put("renewAtMs", JsonPrimitive(renewAtMs))
        put("expiresAtMs", JsonPrimitive(expiresAtMs))
    }
}.toString()

private fun keptIn(text: String): Kept {
    val members = try {
        Json.parseToJsonElement(text) as? JsonObject
    } catch (_: SerializationException) {
        null
    } ?: throw corrupt()
    val refreshToken = members.text("refreshToken") ?: throw corrupt()
    if ("accessToken" !in members) return Kept.SignedOut(refreshToken)
    val challenge = members.text("challenge") ?: throw corrupt()
    try {
        decodeBase64(challenge)
    } catch (_: LogException) {
        throw corrupt()
    }
    return Kept.SignedIn(
        members.text("userId")?.toULongOrNull() ?: throw corrupt(),
        members.text("sessionId") ?: throw corrupt(),
        members.text("accessToken") ?: throw corrupt(),
        refreshToken,
        challenge,
        members.number("renewAtMs") ?: throw corrupt(),
        members.number("expiresAtMs") ?: throw corrupt(),
    )
}

internal fun bodyOf(members: Map<String, String?>): JsonObject =
    JsonObject(members.mapNotNull { (name, text) -> text?.let { name to JsonPrimitive(it) } }.toMap())

private fun corrupt() =
    CallsignException(LocalCode.STORAGE_CORRUPT, "The stored session is damaged. Remove it to start without it.")
