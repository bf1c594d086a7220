/**
 * Proofs after the sign-in of who the user is (docs/protocol/accounts.md, "Prove it once more"): the server refuses some operations without a
 * fresh one. One question to the user serves all operations that wait.
 */
package callsign.app

import callsign.verify.encodeBase64
import callsign.verify.stepUpMessage
import java.security.MessageDigest
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull

public enum class ProofWay { CODE, PASSKEY, PROVIDER }

/**
 * The user has to prove who they are. The refused operation waits until one of the ways succeeds, and is then repeated. A way that
 * throws, such as `OTP_INVALID`, leaves the question open. [refuse] ends it: the operation throws `STEP_UP_REQUIRED`.
 *
 * @property ways what this account and this app have.
 */
public class ProofQuestion internal constructor(private val stepUp: StepUp, public val ways: Set<ProofWay>) {
    internal val answer = CompletableDeferred<Boolean>()

    /** Operations; changed by [StepUp] under its lock. */
    internal var waiting = 0

    @Volatile
    internal var sent: CodeSent? = null

    /** Where the newest code went, as it may be shown. Null while none was sent: [sendCode]. */
    public val sentTo: String? get() = sent?.sentTo

    public suspend fun confirm(code: String): Unit = stepUp.confirm(this, code)

    public suspend fun byPasskey(): Unit = stepUp.byPasskey(this)

    /** By a token that the provider has signed since the session began. */
    public suspend fun byProvider(provider: String, idToken: String, nonce: String? = null): Unit =
        stepUp.byProvider(this, provider, idToken, nonce)

    /** Sends a code, or another one. Throws `OTP_COOLDOWN` where the last one is too young. */
    public suspend fun sendCode(): CodeSent = stepUp.sendCode(this)

    public fun refuse(): Unit = stepUp.end(this, isProven = false)
}

/** [asked] is the question that is open: who collects it asks the user. */
internal class StepUp(
    private val session: Session,
    private val keysOf: DeviceKeysOf,
    private val authenticator: PasskeyAuthenticator?,
    private val operations: Operations,
    private val asked: MutableStateFlow<ProofQuestion?>,
) {
    /** Proofs so far: a request that was refused before the newest one is not asked about. */
    @Volatile
    var count = 0
        private set

    /** Returns once there is a proof. Throws the refusal, or what [giveUp] says. */
    suspend fun prove(refusal: CallsignException) {
        val question = questionAbout(refusal)
        try {
            if (!question.answer.await()) throw refusal
        } finally {
            leave(question)
        }
    }

    /** Nobody is signed in any more who could prove anything. */
    @Synchronized
    fun giveUp(error: CallsignException) {
        asked.value?.answer?.completeExceptionally(error)
        asked.value = null
    }

    @Synchronized
    fun end(question: ProofQuestion, isProven: Boolean) {
        if (asked.value !== question) return
        if (isProven) count++
        asked.value = null
        question.answer.complete(isProven)
    }

    suspend fun confirm(question: ProofQuestion, code: String) = operations.run {
        val challengeId = question.sent?.challengeId ?: throw CallsignException("CHALLENGE_GONE", "No code was sent yet.")
        val otp = code.filterNot(Char::isWhitespace)
        take(question, bodyOf(mapOf("challengeId" to challengeId, "otp" to otp)), challengeId)
    }

    suspend fun byPasskey(question: ProofQuestion) {
        val present = authenticator.assertPresent()
        val options = operations.run { session.ask("POST", "passkey/options").member("options") }
        val credential = present.credential { get(options.toString()) }
        operations.run { take(question, JsonObject(mapOf("passkey" to credential)), options.needText("challenge")) }
    }

    suspend fun byProvider(question: ProofQuestion, provider: String, idToken: String, nonce: String?) = operations.run {
        take(question, bodyOf(mapOf("provider" to provider, "idToken" to idToken, "nonce" to nonce)), idToken)
    }

    suspend fun sendCode(question: ProofQuestion): CodeSent = operations.run {
        assertOpen(question)
        val sent = try {
            question.sent?.let { session.resendCode(it.challengeId) } ?: firstCode()
        } catch (error: CallsignException) {
            if (error.code != "CHALLENGE_GONE") throw error
            firstCode()
        }
        question.sent = sent
        sent
    }

    @Synchronized
    private fun questionAbout(refusal: CallsignException): ProofQuestion {
        val open = asked.value
        if (open == null && asked.subscriptionCount.value == 0) throw refusal
        val question = open ?: ProofQuestion(this, waysIn(refusal))
        // The newest code is the one that the server is sure to know.
        (refusal.members["challenge"] as? JsonObject)?.let { question.sent = codeSentOf(it) }
        question.waiting++
        asked.value = question
        return question
    }

    /** A question that no operation waits for any more is not asked. */
    @Synchronized
    private fun leave(question: ProofQuestion) {
        if (--question.waiting == 0) end(question, isProven = false)
    }

    private fun waysIn(refusal: CallsignException): Set<ProofWay> {
        val named = (refusal.members["ways"] as? JsonArray).orEmpty().mapNotNull { (it as? JsonPrimitive)?.contentOrNull }
        val known = named.mapNotNull { namedOrNull<ProofWay>(it) }
        return known.filterTo(LinkedHashSet()) { it != ProofWay.PASSKEY || authenticator != null }
    }

    private suspend fun firstCode(): CodeSent =
        codeSentOf(session.ask("POST", "user/step-up", bodyOf(mapOf("send" to "code"))).member("challenge"))

    /** [text] is what the device signs: the server takes no proof of a listed device without. */
    private suspend fun take(question: ProofQuestion, proof: Map<String, JsonElement>, text: String) {
        val userId = assertOpen(question)
        val digest = MessageDigest.getInstance("SHA-256").digest(text.toByteArray())
        val signature = encodeBase64(keysOf.of(userId).sign(stepUpMessage(userId, digest)))
        assertOpen(question)
        session.request("POST", "user/step-up", JsonObject(proof + ("deviceSignature" to JsonPrimitive(signature))))
        end(question, isProven = true)
    }

    /** A question of before must not prove who another user of this app is. */
    private fun assertOpen(question: ProofQuestion): ULong =
        session.userId.takeIf { asked.value === question }
            ?: throw CallsignException("CHALLENGE_GONE", "This is not asked any more.")
}
