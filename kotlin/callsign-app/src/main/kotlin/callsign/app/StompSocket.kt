/**
 * One WebSocket that speaks STOMP with the server, from CONNECT to its end: heart-beats, receipts, and refusals, which come to
 * `/user/queue/errors`. It does not come back by itself. Heart-beats and the deadlines of answers stay here rather than in
 * `connection/Decide.kt`: each belongs to one socket and to every octet on it, and ends as a close like any other.
 */
package callsign.app

import callsign.app.CallsignException.LocalCode
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.trySendBlocking
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import okhttp3.WebSocket
import okhttp3.WebSocketListener
import okio.ByteString

/**
 * How a connection ended. [code] is as docs/protocol/socket.md has them; 1006 where the network broke, 1002 where the server broke the
 * protocol.
 */
internal class StompClose(
    val code: Int,
    val reason: String,
    val retryAfterMs: Long,
    val error: CallsignException?,
)

/** How often this side sends something, and how often the server is to. */
internal class HeartBeatMs(val outgoing: Long, val incoming: Long)

/**
 * All of it runs in [scope], one step at a time. [onConnected] takes the headers of CONNECTED and [onMessage] a MESSAGE: an
 * error that they throw ends the connection.
 */
internal class StompSocket(
    private val scope: CoroutineScope,
    http: OkHttpClient,
    url: String,
    private val accessToken: String,
    private val language: String,
    private val heartBeatMs: HeartBeatMs,
    private val answerWithinMs: Long,
    private val onConnected: (StompSocket, Map<String, String>) -> Unit,
    private val onMessage: (StompSocket, StompFrame) -> Unit,
) {
    private enum class Stage { OPENING, CONNECTED, OVER }

    private sealed interface Incoming {
        data object Open : Incoming

        class Text(val text: String) : Incoming

        class Closed(val code: Int, val reason: String) : Incoming
    }

    private val closing = CompletableDeferred<StompClose>()

    /** Completes when the connection has ended. */
    val closed: Deferred<StompClose> get() = closing

    /** Requests without an answer so far, by receipt. */
    private val waiting = HashMap<String, CompletableDeferred<Map<String, String>>>()
    private val incoming = Channel<Incoming>(INCOMING_MAX)
    private var receipts = 0L
    private var stage = Stage.OPENING
    private var frameBytesMax = 0L

    /** The server is given up when it is silent for so long. */
    private var silenceMs = 0L
    private var silence: Job? = null
    private var beats: Job? = null

    /** The ERROR with which the server ends the connection. */
    private var error: StompFrame? = null
    private val request = Request.Builder().url(url).header("Sec-WebSocket-Protocol", "v12.stomp").build()
    private val webSocket: WebSocket = http.newWebSocket(request, Listener())

    init {
        scope.launch { for (each in incoming) take(each) }
        allowSilence(answerWithinMs)
    }

    /**
     * Sends a frame, and returns the headers of its RECEIPT. Throws the server's refusal, `BODY_TOO_LARGE`, or `OFFLINE` where the
     * connection ends before.
     */
    suspend fun request(command: String, headers: Map<String, String>, body: String = ""): Map<String, String> {
        if (stage != Stage.CONNECTED) throw offline()
        val receipt = "${++receipts}"
        val frame = formatFrame(command, headers + ("receipt" to receipt), body)
        // The NUL does not count.
        if (frame.toByteArray().size - 1 > frameBytesMax)
            throw CallsignException("BODY_TOO_LARGE", "The message is larger than the server takes.")
        val answer = CompletableDeferred<Map<String, String>>()
        waiting[receipt] = answer
        webSocket.send(frame)
        return answer.await()
    }

    /** Sends a frame that needs no answer. */
    fun tell(command: String, headers: Map<String, String>) {
        if (stage == Stage.CONNECTED) webSocket.send(formatFrame(command, headers))
    }

    /** Ends the connection when the server has carried out all that was sent, or does not answer. */
    suspend fun disconnect() {
        allowSilence(DISCONNECT_WITHIN_MS)
        try {
            request("DISCONNECT", emptyMap())
        } catch (_: CallsignException) {
            // It has ended already.
        }
        abandon()
    }

    /** Ends the connection at once. */
    fun abandon(): Unit = end(code = 1000)

    private fun take(each: Incoming) = when (each) {
        is Incoming.Open -> {
            val headers = mapOf(
                "accept-version" to "1.2",
                "host" to request.url.host,
                "heart-beat" to "${heartBeatMs.outgoing},${heartBeatMs.incoming}",
                "Authorization" to "Bearer $accessToken",
            ) + if (language.isEmpty()) emptyMap() else mapOf("accept-language" to language)
            webSocket.send(formatFrame("CONNECT", headers))
            Unit
        }
        is Incoming.Text -> onText(each.text)
        is Incoming.Closed -> end(each.code, each.reason)
    }

    private fun onText(text: String) {
        if (stage == Stage.OVER) return
        if (stage == Stage.CONNECTED) allowSilence(silenceMs)
        // A lone line end is a heart-beat.
        if (text == "\n") return
        try {
            if (text.length > MESSAGE_CHARS_MAX) throw answerInvalid()
            onFrame(parseFrame(text))
        } catch (cause: Exception) {
            val sentence = "The server sent a frame that makes no sense here."
            end(1002, "", CallsignException(LocalCode.ANSWER_INVALID, sentence, cause))
        }
    }

    private fun onFrame(frame: StompFrame) {
        if (frame.command == "ERROR") return onError(frame)
        if ((frame.command == "CONNECTED") != (stage == Stage.OPENING)) throw answerInvalid()
        when (frame.command) {
            "CONNECTED" -> onConnected(frame.headers)
            "RECEIPT" -> answered(frame.headers["receipt-id"])?.complete(frame.headers)
            "MESSAGE" -> if (frame.headers["subscription"] == ERRORS) onRefusal(frame) else onMessage(this, frame)
            else -> throw answerInvalid()
        }
    }

    private fun onRefusal(frame: StompFrame) {
        val members = objectIn(frame.body) ?: throw answerInvalid()
        val refusal = errorOf(members["problem"], LocalCode.ANSWER_INVALID, "The server refused it.")
        answered(members.text("receiptId"))?.completeExceptionally(refusal)
    }

    private fun onConnected(headers: Map<String, String>) {
        val (sends, wants) = HEART_BEAT.matchEntire(headers["heart-beat"] ?: "0,0")?.destructured ?: throw answerInvalid()
        fun periodOf(theirs: Long, ours: Long) = if (theirs == 0L) 0 else maxOf(theirs, ours)
        val outMs = periodOf(wants.toLong(), heartBeatMs.outgoing)
        val inMs = periodOf(sends.toLong(), heartBeatMs.incoming)
        stage = Stage.CONNECTED
        frameBytesMax = headers["max-frame"]?.toLongOrNull() ?: FRAME_BYTES_MAX
        if (outMs > 0) beats = scope.launch {
            while (true) {
                delay(outMs)
                webSocket.send("\n")
            }
        }
        allowSilence(if (inMs == 0L) 0 else inMs * 5 / 2 + SILENCE_GRACE_MS)
        tell("SUBSCRIBE", mapOf("id" to ERRORS, "destination" to "/user/queue/errors"))
        onConnected(this, headers)
    }

    /** The server closes the connection after it. */
    private fun onError(frame: StompFrame) {
        error = frame
        allowSilence(answerWithinMs)
        answered(frame.headers["receipt-id"])?.completeExceptionally(problemIn(frame))
    }

    private fun answered(receipt: String?) = waiting.remove(receipt)

    /** Counted from now, and anew with each message; zero is for ever. */
    private fun allowSilence(ms: Long) {
        silence?.cancel()
        silenceMs = ms
        if (stage == Stage.OVER || ms == 0L) return
        silence = scope.launch {
            delay(ms)
            end()
        }
    }

    private fun end(code: Int = 1006, reason: String = "", fault: CallsignException? = null) {
        if (stage == Stage.OVER) return
        stage = Stage.OVER
        silence?.cancel()
        beats?.cancel()
        for (each in waiting.values) each.completeExceptionally(offline())
        waiting.clear()
        // A close may be under way; a dead network would hold it up.
        webSocket.cancel()
        incoming.cancel()
        val last = error
        val retryAfterMs = last?.headers?.get("retry-after")?.toLongOrNull() ?: 0
        closing.complete(
            StompClose(
                code,
                reason.ifEmpty { last?.headers?.get("reason").orEmpty() },
                retryAfterMs.coerceIn(0, RETRY_AFTER_MS_MAX),
                fault ?: last?.let(::problemIn),
            ),
        )
    }

    /** OkHttp calls it in a thread of its own, which waits while there is much to take. */
    private inner class Listener : WebSocketListener() {
        override fun onOpen(webSocket: WebSocket, response: Response) = put(Incoming.Open)

        override fun onMessage(webSocket: WebSocket, text: String) = put(Incoming.Text(text))

        /** Bodies that are no text; an app has no use for them. */
        override fun onMessage(webSocket: WebSocket, bytes: ByteString) = put(Incoming.Text("\n"))

        override fun onClosing(webSocket: WebSocket, code: Int, reason: String) = put(Incoming.Closed(code, reason))

        override fun onFailure(webSocket: WebSocket, t: Throwable, response: Response?) = put(Incoming.Closed(1006, ""))

        private fun put(each: Incoming) {
            incoming.trySendBlocking(each)
        }
    }

    private companion object {
        /** The id of the subscription to refusals. */
        const val ERRORS = "errors"
        const val INCOMING_MAX = 64
        const val FRAME_BYTES_MAX = 256L * 1024

        /** Far above all that the server sends. */
        const val MESSAGE_CHARS_MAX = 1024 * 1024
        const val SILENCE_GRACE_MS = 1_000L
        const val DISCONNECT_WITHIN_MS = 2_000L
        const val RETRY_AFTER_MS_MAX = 600_000L
        val HEART_BEAT = Regex("([0-9]{1,7}),([0-9]{1,7})")
    }
}

private fun problemIn(frame: StompFrame): CallsignException {
    val code = frame.headers["reason"]?.uppercase() ?: LocalCode.ANSWER_INVALID
    return errorOf(objectIn(frame.body), code, "The server ended the connection.")
}
