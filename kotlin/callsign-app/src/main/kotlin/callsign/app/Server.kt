/** Requests to the server: their problems as errors, and repeated when the server is busy or does not answer. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import java.io.IOException
import java.util.Locale
import java.util.UUID
import java.util.concurrent.TimeUnit
import javax.net.ssl.SSLPeerUnverifiedException
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException
import kotlin.math.abs
import kotlin.random.Random
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.withContext
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import okhttp3.Call
import okhttp3.Callback
import okhttp3.CertificatePinner
import okhttp3.HttpUrl.Companion.toHttpUrl
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response

/**
 * One server as an app sees it.
 *
 * @param url such as `https://call.example.org`.
 * @param http the client of OkHttp, to share one with the app.
 * @param clientVersion `X-Client-Version`, such as `android/1.4.2 (214)`.
 * @param nowMs the clock, POSIX time in milliseconds.
 * @param tlsPins `sha256/` and base64 of SHA-256 of a public key. Without one of these keys in the server's chain of certificates
 * nothing is sent to it. None: the phone's authorities alone decide.
 * @param language the tag of the user's language, such as `vi-VN`, in which errors have their sentences.
 */
public class Server(
    url: String,
    http: OkHttpClient = OkHttpClient(),
    private val clientVersion: String? = null,
    internal val nowMs: () -> Long = System::currentTimeMillis,
    tlsPins: List<String> = emptyList(),
    internal val language: String = Locale.getDefault().toLanguageTag(),
) {
    init {
        Spoken.language = language
    }

    internal val prefix = url.trimEnd('/')

    /** Follows no redirect: codes and tokens are for this server alone. */
    internal val http = http.newBuilder()
        .callTimeout(ANSWER_WITHIN_MS, TimeUnit.MILLISECONDS)
        .followRedirects(false)
        .apply { if (tlsPins.isNotEmpty()) certificatePinner(pinned(http.certificatePinner, prefix, tlsPins)) }
        .build()

    /** How much the server's clock is ahead of this one. */
    @Volatile
    private var aheadMs = 0L

    /** Whether the server has named its time yet. */
    @Volatile
    internal var isTimeKnown = false
        private set

    /** Whether a request to this address goes to the server. */
    internal fun isAt(url: String): Boolean = url.startsWith("$prefix/")

    /** The time by the server's clock, which the times in its answers are of. */
    public fun serverTimeMs(): Long = nowMs() + aheadMs

    /** Takes a time that the server has just named, such as `server-time` of a STOMP connection. */
    internal fun hearTime(serverMs: Long, toleranceMs: Long = 0) {
        isTimeKnown = true
        if (abs(serverMs - serverTimeMs()) > toleranceMs) aheadMs = serverMs - nowMs()
    }

    /**
     * The JSON that answers [operation], such as `login` or `call/start`; null for an empty answer. All attempts of a POST have
     * one `Idempotency-Key`, which is among [headers] where the caller repeats it too. Throws the server's refusal, or
     * `NO_ANSWER` or `ANSWER_INVALID`.
     */
    public suspend fun request(
        method: String,
        operation: String,
        body: JsonObject? = null,
        headers: Map<String, String> = emptyMap(),
    ): JsonElement? {
        val key = if (method == "POST") mapOf("idempotency-key" to UUID.randomUUID().toString()) else emptyMap()
        var attempt = 0
        while (true) {
            val failure = when (val outcome = attempt(method, operation, body, key + headers)) {
                is Outcome.Reply -> return outcome.value
                is Outcome.Failure -> outcome
            }
            val waitMs = waitMs(failure, attempt++, "$method $operation" !in COUNTED) ?: throw failure.error
            delay(waitMs)
        }
    }

    private sealed interface Outcome {
        class Reply(val value: JsonElement?) : Outcome

        class Failure(val error: CallsignException, val retryAfterS: Long? = null) : Outcome
    }

    /** How long to wait before the next attempt; null for none. */
    private fun waitMs(failure: Outcome.Failure, attempt: Int, canRepeatLost: Boolean): Long? {
        val error = failure.error
        if (attempt + 1 >= ATTEMPTS_MAX || error.code == "OTP_COOLDOWN") return null
        // It would be the same one again.
        if (error.cause is SSLPeerUnverifiedException) return null
        val isBusy = error.status == 429 || error.status == 503
        val isLost = error.code == LocalCode.NO_ANSWER || error.status == 502 || error.status == 504
        if (!isBusy && !(isLost && canRepeatLost)) return null
        val retryAfterS = failure.retryAfterS
        if (retryAfterS != null)
            return if (retryAfterS > RETRY_AFTER_MAX_S) null else 1_000 * retryAfterS + Random.nextLong(1_000)
        return Random.nextLong(minOf(WAIT_MAX_MS, WAIT_MS shl attempt))
    }

    private suspend fun attempt(
        method: String,
        operation: String,
        body: JsonObject?,
        headers: Map<String, String>,
    ): Outcome {
        val content = body?.toString() ?: if (method == "POST" || method == "PUT") "" else null
        val request = Request.Builder()
            .url("$prefix/app/api/$operation")
            .method(method, content?.toByteArray()?.toRequestBody(if (body == null) null else JSON))
            .apply { if (language.isNotEmpty()) header("accept-language", language) }
            .apply { clientVersion?.let { header("x-client-version", it) } }
            .apply { headers.forEach(::header) }
            .build()
        return try {
            // A slow answer would hold up all that waits for the same thread.
            http.newCall(request).answered().use { outcomeOf(it, withContext(Dispatchers.IO) { textOf(it) }) }
        } catch (cause: SSLPeerUnverifiedException) {
            val sentence = "Another server answers: its certificate is not the one that this app expects."
            Outcome.Failure(CallsignException(LocalCode.NO_ANSWER, sentence, cause))
        } catch (cause: IOException) {
            Outcome.Failure(CallsignException(LocalCode.NO_ANSWER, "The server does not answer.", cause))
        }
    }

    /** Null for an answer that is too long. */
    private fun textOf(answer: Response): String? {
        val source = answer.body.source()
        return if (source.request(ANSWER_OCTETS_MAX + 1L)) null else source.readUtf8()
    }

    private fun outcomeOf(answer: Response, text: String?): Outcome {
        val status = answer.code
        answer.headers.getDate("date")?.let { hearTime(it.time, DATE_TOLERANCE_MS) }
        val value = text?.let(::parsed)
        if (answer.isSuccessful && (value != null || text?.isEmpty() == true)) return Outcome.Reply(value)
        if (answer.isSuccessful || answer.isRedirect) {
            val sentence = "The server answered with something else than its interface says."
            return Outcome.Failure(CallsignException(LocalCode.ANSWER_INVALID, sentence, status = status))
        }
        val error = errorOf(value, "HTTP_$status", "The server answered with status $status.", status)
        return Outcome.Failure(error, answer.header("retry-after")?.toLongOrNull())
    }

    /** Null for what is no object: the parser takes a page of HTML for a text without quotes. */
    private fun parsed(text: String): JsonObject? = try {
        if (text.isEmpty()) null else Json.parseToJsonElement(text) as? JsonObject
    } catch (_: SerializationException) {
        null
    }

    private companion object {
        val JSON = "application/json".toMediaType()
        const val ATTEMPTS_MAX = 6
        const val ANSWER_WITHIN_MS = 15_000L

        /** The longest replies, with the keys of many devices, have some hundred thousand. */
        const val ANSWER_OCTETS_MAX = 8 * 1024 * 1024

        /** Bounds of the first wait and of all further ones, without `Retry-After`. */
        const val WAIT_MS = 500L
        const val WAIT_MAX_MS = 10_000L

        /** An app says so to its user rather than wait longer. */
        const val RETRY_AFTER_MAX_S = 20

        /** `Date` counts whole seconds, and the answer has been on its way. */
        const val DATE_TOLERANCE_MS = 5_000L

        /** Each attempt counts: a repeated one could use up codes or tries, and a passkey's answer is good once. */
        val COUNTED = setOf(
            "POST resend-otp",
            "POST verify-login",
            "POST verify",
            "POST user/step-up",
            "POST login/passkey",
            "POST user/passkeys",
            "POST user/login-methods",
        )
    }
}

/** With the pins of the app's own client. Throws `IllegalArgumentException` for a pin of another form, or a server without TLS. */
private fun pinned(others: CertificatePinner, url: String, pins: List<String>): CertificatePinner {
    val server = url.toHttpUrl()
    require(server.isHttps) { "TLS pins need a server at https://" }
    for (pin in pins) require(PIN.matches(pin)) { "a TLS pin is sha256/ and base64 of 32 octets" }
    return CertificatePinner.Builder()
        .apply { for (other in others.pins) add(other.pattern, "${other.hashAlgorithm}/${other.hash.base64()}") }
        .add(server.host, *pins.toTypedArray())
        .build()
}

private val PIN = Regex("sha256/[A-Za-z0-9+/]{43}=")

internal suspend fun Call.answered(): Response = suspendCancellableCoroutine { waiting ->
    waiting.invokeOnCancellation { cancel() }
    enqueue(object : Callback {
        override fun onFailure(call: Call, e: IOException) = waiting.resumeWithException(e)

        override fun onResponse(call: Call, response: Response) =
            waiting.resume(response) { _, unread, _ -> unread.close() }
    })
}
