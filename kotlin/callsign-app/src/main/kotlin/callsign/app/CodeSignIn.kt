/**
 * Signing in by a code, or a token of the app's backend. Where the account has a device that can be asked, a right code waits for its answer, for hours or
 * days: the wait is kept in the storage, and goes on after the app is closed.
 */
package callsign.app

import callsign.app.CallsignException.LocalCode
import kotlinx.coroutines.delay
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** A code is on its way. [error] is why the last one was refused; its member `attemptsLeft` says how many more may be tried. */
public class CodeQuestion internal constructor(
    public val sent: CodeSent,
    public val error: CallsignException?,
    private val another: suspend (attestation: String?) -> CodeSent,
) {
    /** Sends another code, after `sent.resendInS` seconds. [attestation] is what the operator's check asks of the app. */
    public suspend fun resend(attestation: String? = null): CodeSent = another(attestation)
}

/** What a sign-in by a code may say beside the address. */
internal class SignInOptions(
    val displayName: String?,
    val country: String?,
    val attestation: String?,
    val reclaim: Boolean,
)

/**
 * A sign-in of this app that waits for its owner. [signInCode] is twenty digits: the device that is asked shows the same ones.
 * Without an answer it goes through at [untilMs]. [address] is empty for a token of the app's backend.
 */
public data class WaitingSignIn(
    public val address: String,
    public val signInCode: String,
    public val untilMs: Long,
)

internal class CodeSignIn(
    private val session: Session,
    private val storage: AppStorage,
    private val keysOf: DeviceKeysOf,
) {
    private class Kept(val waitingId: String, val signIn: WaitingSignIn)

    /** Throws `SIGN_IN_WAITING` once the wait is kept. */
    suspend fun signIn(
        address: String,
        options: SignInOptions,
        confirm: suspend (CodeQuestion) -> String,
    ): User {
        val sent = session.requestCodeFor(address, options)
        val kept = kept()
        val waitingId = kept?.takeIf { normalized(it.signIn.address) == normalized(address) }?.waitingId
        try {
            val user = confirmed(session, sent, confirm) { challengeId, code ->
                session.verifyCode(challengeId, code, proofs(challengeId, waitingId, options.reclaim))
            }
            if (kept != null) forget()
            return user
        } catch (refused: CallsignException) {
            if (refused.code == WAITING) keep(address, refused)
            throw refused
        }
    }

    /** By a token of the app's backend. Throws `SIGN_IN_WAITING` once the wait is kept. */
    suspend fun signInByToken(token: String): User {
        val kept = kept()
        val challenge = sha256(token.toByteArray()).copyOf(CHALLENGE_OCTETS)
        try {
            val user = session.verifyToken(token, device(challenge))
            if (kept != null) forget()
            return user
        } catch (refused: CallsignException) {
            if (refused.code == WAITING) keep("", refused)
            throw refused
        }
    }

    /** Null where none waits, or a user is signed in. */
    suspend fun waiting(): WaitingSignIn? = kept()?.signIn

    /** Asks until the sign-in that waits is in: the user, and the address. Throws `SIGN_IN_REFUSED` or `SIGN_IN_GONE`. */
    suspend fun finish(): Pair<User, String> {
        var asks = 0
        while (true) {
            val kept = kept() ?: throw CallsignException(GONE, "No sign-in waits: begin again.")
            try {
                val user = session.fetchWaiting(kept.waitingId)
                forget()
                return user to kept.signIn.address
            } catch (error: CallsignException) {
                if (error.hasCode(REFUSED, GONE)) forget()
                if (!mayPass(error)) throw error
                delay(pauseMs(asks++, error.members.number("retryIn")))
            }
        }
    }

    private suspend fun proofs(challengeId: String, waitingId: String?, reclaim: Boolean): Map<String, JsonElement> {
        val device = octetsOfId(challengeId)?.let { device(it) }
        return buildMap {
            if (device != null) put("device", device)
            if (waitingId != null) put("waitingId", JsonPrimitive(waitingId))
            if (reclaim) put("reclaim", JsonPrimitive(true))
        }
    }

    /** Where this is a device of the last user, whose sign-in it may be. */
    private suspend fun device(challenge: ByteArray): JsonObject? =
        storage.lastSignIn()?.userId?.let { deviceProof(storage, keysOf, it, challenge) }

    private suspend fun kept(): Kept? {
        if (session.userId != null) return null
        return storage.read(KEY) { kept ->
            val signIn = WaitingSignIn(
                kept.text("address") ?: return@read null,
                kept.text("signInCode") ?: return@read null,
                kept.number("untilMs") ?: return@read null,
            )
            Kept(kept.text("waitingId") ?: return@read null, signIn)
        }
    }

    private suspend fun keep(address: String, waiting: CallsignException) {
        val members = waiting.members
        val texts = mapOf(
            "address" to address,
            "waitingId" to members.needText("waitingId"),
            "signInCode" to members.needText("signInCode"),
            "untilMs" to "${members.needTimeMs("until")}",
        )
        storage.write(KEY, bodyOf(texts))
    }

    private suspend fun forget() = storage.write(KEY, null)

    private companion object {
        const val KEY = "waiting-sign-in"
        const val CHALLENGE_OCTETS = 16
        const val WAITING = "SIGN_IN_WAITING"
        const val REFUSED = "SIGN_IN_REFUSED"
        const val GONE = "SIGN_IN_GONE"

        fun mayPass(error: CallsignException): Boolean =
            error.hasCode(WAITING, LocalCode.NO_ANSWER) || error.status == 429 || (error.status ?: 0) >= 500
    }
}

/** Asks for the code until [verify] takes it. */
internal suspend fun confirmed(
    session: Session,
    first: CodeSent,
    confirm: suspend (CodeQuestion) -> String,
    verify: suspend (challengeId: String, code: String) -> User,
): User {
    var sent = first
    var error: CallsignException? = null
    while (true) {
        val question = CodeQuestion(sent, error) { session.resendCode(sent.challengeId, it).also { again -> sent = again } }
        val code = confirm(question).filterNot(Char::isWhitespace)
        try {
            return verify(sent.challengeId, code)
        } catch (refused: CallsignException) {
            if (refused.code != "OTP_INVALID" || refused.members.number("attemptsLeft") == 0L) throw refused
            error = refused
        }
    }
}

/** In the first minutes the owner holds both devices; later a minute does not matter. [retryInS] is the server's wish. */
internal fun pauseMs(asks: Int, retryInS: Long?): Long =
    maxOf(if (asks < OFTEN) OFTEN_MS else SELDOM_MS, 1_000 * minOf(retryInS ?: 0, RETRY_IN_S_MAX))

private const val OFTEN = 60
private const val OFTEN_MS = 5_000L
private const val SELDOM_MS = 60_000L
private const val RETRY_IN_S_MAX = 3_600L

/** Whose session began last, and by which address. */
internal class LastSignIn(val userId: ULong, val address: String)

internal suspend fun AppStorage.lastSignIn(): LastSignIn? = read(ADDRESS) { kept ->
    LastSignIn(kept.text("userId")?.toULongOrNull() ?: return@read null, kept.text("address") ?: return@read null)
}

internal suspend fun AppStorage.keepLastSignIn(userId: ULong, address: String): Unit =
    write(ADDRESS, bodyOf(mapOf("userId" to "$userId", "address" to normalized(address))))

internal fun normalized(address: String): String = address.trim().lowercase()

private const val ADDRESS = "address"
