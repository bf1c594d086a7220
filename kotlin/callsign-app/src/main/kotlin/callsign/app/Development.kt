/**
 * For programs that try a development server without a person. An app has its pins built in, and its user types the code.
 */
package callsign.app

import callsign.verify.LogKeys
import java.io.IOException
import java.net.URLEncoder
import kotlinx.coroutines.delay
import kotlinx.serialization.json.JsonObject
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response

/** The keys of the log as the server itself says them: nothing is proved by them, since it could say any. */
public suspend fun developmentPins(url: String): LogKeys {
    val meta = Server(url).request("GET", "meta") as? JsonObject ?: throw answerInvalid()
    val log = meta.member("log")
    val indexVkey = (log["index"] as? JsonObject)?.needText("vkey")
    return LogKeys.ofVerifierKey(log.needText("vkey"), log.needText("vrfPublicKey"), indexVkey)
}

/**
 * The code that was just sent to the address, from `/dev/inbox`. It leaves a moment after the answer to the login. Throws
 * `NOT_FOUND` where none comes.
 */
public suspend fun sentCode(url: String, address: String): String {
    val http = OkHttpClient()
    val request = Request.Builder().url("$url/dev/inbox?to=${URLEncoder.encode(address, "UTF-8")}").build()
    repeat(TRIES) {
        val code = try {
            http.newCall(request).answered().use(::codeIn)
        } catch (_: IOException) {
            null
        }
        if (code != null) return code
        delay(PAUSE_MS)
    }
    throw CallsignException("NOT_FOUND", "No code for $address is in the inbox of a development server.")
}

private fun codeIn(answer: Response): String? {
    val sinceMs = (answer.headers.getDate("date")?.time ?: 0) - RECENT_MS
    val letters = objectIn(answer.body.string())?.members("items").orEmpty()
    return letters.find { it.text("otp") != null && it.needTimeMs("at") > sinceMs }?.text("otp")
}

private const val TRIES = 100
private const val PAUSE_MS = 50L

/** Another code can be asked for after a minute. */
private const val RECENT_MS = 5_000L
