/** Tokens by which the user shows services of the operator who they are, each used again until a minute before its end. */
package callsign.app

import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.async
import kotlinx.serialization.json.JsonObject

/** Used from [scope] alone, whose coroutines run one at a time, and where one that fails ends no other. */
internal class UserTokens(
    private val scope: CoroutineScope,
    private val nowMs: () -> Long,
    private val ask: suspend (audience: String) -> JsonObject,
) {
    private class Kept(val askedAtMs: Long, val reply: Deferred<JsonObject>) {
        /** Endless while the server is being asked. */
        var usableUntilMs = Long.MAX_VALUE
    }

    /** By audience. */
    private val kept = mutableMapOf<String, Kept>()

    suspend fun tokenFor(audience: String): String {
        val nowMs = nowMs()
        // A clock that was set back can't say how old the token is.
        kept[audience]?.takeIf { nowMs in it.askedAtMs until it.usableUntilMs }?.let { return tokenIn(it.reply.await()) }
        val asked = Kept(nowMs, scope.async { ask(audience) })
        kept[audience] = asked
        try {
            val reply = asked.reply.await()
            // By the time of the question: how long the answer was on its way is not known.
            asked.usableUntilMs = nowMs + reply.needNumber("expiresIn") * 1000 - SPARE_MS
            return tokenIn(reply)
        } catch (error: CallsignException) {
            kept.remove(audience, asked)
            throw error
        }
    }

    private fun tokenIn(reply: JsonObject): String = reply.needText("token")

    private companion object {
        /** For clocks that differ, and requests that take their time. */
        const val SPARE_MS = 60_000L
    }
}
