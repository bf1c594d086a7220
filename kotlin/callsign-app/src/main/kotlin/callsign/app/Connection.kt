/**
 * The connection of one device, as docs/calls.md has it ("Connect"): it comes back by itself, hands each event of the device's
 * queues over once, in order, and acknowledges what was handled.
 */
package callsign.app

import callsign.app.CallsignException.LocalCode
import kotlin.random.Random
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonObject

/** [ELSEWHERE]: another connection of this device took over; it stays so until [Callsign.connect]. */
public enum class ConnectionState { OFF, CONNECTING, CONNECTED, ELSEWHERE }

internal interface ConnectionListener {
    /** Called with each new state, and after each attempt that failed. [failures] counts those in a row. */
    fun onState(state: ConnectionState, failures: Int)

    /** All subscriptions are there, also after each reconnection: read what events may have been missed. */
    suspend fun onConnected()

    /**
     * An event of the device's queues, of a type that a newer server may have added. The next one of its queue waits until this
     * one is done, and is acknowledged then. It counts as done when it throws, too, after [onTrouble].
     */
    suspend fun onEvent(event: JsonObject)

    /** The server asks for the device of this session to be registered. */
    suspend fun onDeviceMissing()

    fun onTrouble(error: Throwable)
}

/** All of it runs in [scope], one step at a time, for as long as its session lasts. */
internal class Connection(
    private val scope: CoroutineScope,
    private val server: Server,
    private val session: Session,
    private val listener: ConnectionListener,
    private val heartBeatMs: HeartBeatMs = HeartBeatMs(BEAT_MS, BEAT_MS),
) {
    private class Message(val event: JsonObject, val id: String, val socket: StompSocket)

    private class Queue {
        val waiting = ArrayDeque<Message>()
        var isBusy = false

        /** The last message whose acknowledgement the server has on disk. */
        var since: String? = null
    }

    private class Watch(val destination: String, val listener: (JsonObject) -> Unit) {
        val subscribed = CompletableDeferred<Unit>()

        /** The connection that it is subscribed on. */
        var socket: StompSocket? = null
    }

    private val queues = listOf("account", "contacts", "calls").associateWith { Queue() }
    private val watches = LinkedHashMap<String, Watch>()
    private var watchCount = 0L

    /** Ids of events, the oldest first. */
    private val seen = LinkedHashSet<String>()
    private var socket: StompSocket? = null

    /** Cancelled by [disconnect] and where the connection must not come back. */
    private var life: Job? = null
    private var pausing: CompletableDeferred<Unit>? = null
    private var deviceId: String? = null

    /** Null without a connection; another one with each. */
    var connectedAtMs: Long? = null
        private set

    /** By the pace of [ACK_EVERY_MS], when there were as many acknowledgements as were sent. */
    private var acksUntilMs = 0L

    var state = ConnectionState.OFF
        private set

    /** Attempts that failed in a row, those after a short connection too. */
    var failures = 0
        private set

    /** Connects, and stays connected until [disconnect]. A pause before the next attempt ends at once. */
    fun connect() {
        pausing?.complete(Unit)
        if (life?.isActive == true) return
        failures = 0
        setState(ConnectionState.CONNECTING)
        life = scope.launch { stayConnected() }
    }

    /** Returns when the server has carried out what was sent before. Ends all watches. */
    suspend fun disconnect() {
        stop(ConnectionState.OFF)?.disconnect()
    }

    /**
     * Subscribes to a topic. Returns the function that ends it when the server has it, which may take until the next
     * connection, and is subscribed again after each reconnection. Throws the server's refusal.
     */
    suspend fun watch(destination: String, listener: (JsonObject) -> Unit): () -> Unit {
        if (life?.isActive != true) throw offline()
        val id = "watch-${++watchCount}"
        val watch = Watch(destination, listener)
        watches[id] = watch
        val present = socket
        if (state == ConnectionState.CONNECTED && present != null) subscribe(present, id, watch)
        watch.subscribed.await()
        return { unwatch(id) }
    }

    /**
     * Returns when the server has carried it out, and has it on disk. Throws the server's refusal, `BODY_TOO_LARGE`, or `OFFLINE`;
     * then it may have been carried out.
     */
    suspend fun send(destination: String, body: JsonObject) {
        val present = socket ?: throw offline()
        present.request("SEND", mapOf("destination" to destination), body.toString())
    }

    private suspend fun stayConnected() {
        while (true) {
            var retryAfterMs = 0L
            try {
                val accessToken = session.accessToken()
                currentCoroutineContext().ensureActive()
                val close = open(accessToken).closed.await()
                forgetWaiting()
                retryAfterMs = close.retryAfterMs
                judge(close, accessToken)
            } catch (cancelled: CancellationException) {
                throw cancelled
            } catch (error: Exception) {
                if (session.userId == null) stop(ConnectionState.OFF)
                else if (!error.hasCode(LocalCode.NO_ANSWER)) listener.onTrouble(error)
            }
            currentCoroutineContext().ensureActive()
            val sinceMs = connectedAtMs
            val isSteady = sinceMs != null && server.nowMs() - sinceMs > STEADY_MS
            failures = if (isSteady) 1 else failures + 1
            connectedAtMs = null
            val pause = CompletableDeferred<Unit>()
            pausing = pause
            setState(ConnectionState.CONNECTING)
            // Full jitter: devices that lost their connections together come back one by one.
            val boundMs = minOf(PAUSE_MS_MAX, PAUSE_MS shl minOf(failures, DOUBLINGS_MAX))
            withTimeoutOrNull(maxOf(Random.nextLong(boundMs), retryAfterMs)) { pause.await() }
        }
    }

    private fun open(accessToken: String): StompSocket = StompSocket(
        scope,
        server.http,
        "${server.prefix}/ws",
        accessToken,
        heartBeatMs,
        ANSWER_WITHIN_MS,
        onConnected = { socket, headers -> scope.launch { onConnected(socket, headers) } },
        onMessage = ::onMessage,
    ).also { socket = it }

    /** The meaning of a close: the table of docs/calls.md. Returns where the connection may come back. */
    private suspend fun judge(close: StompClose, accessToken: String) {
        if (close.code == 4409) {
            stop(ConnectionState.ELSEWHERE)
            return
        }
        if (close.code == 4403 || (close.code == 4401 && close.reason in OVER_REASONS)) {
            val sentence = close.error?.message ?: "The server has ended the session."
            val code = if (close.code == 4403) LocalCode.DEVICE_REMOVED else close.reason.uppercase()
            return session.endBy(CallsignException(code, sentence))
        }
        if (close.code == 4401) return session.renew(accessToken)
        if (close.reason == "device_not_registered") return listener.onDeviceMissing()
        if (close.code in FAULT_CODES) listener.onTrouble(close.error ?: answerInvalid())
    }

    private suspend fun onConnected(socket: StompSocket, headers: Map<String, String>) {
        headers["server-time"]?.toLongOrNull()?.takeIf { it > 0 }?.let { server.hearTime(it) }
        val device = headers["device"]
        if (device != deviceId) forgetDevice()
        deviceId = device
        connectedAtMs = server.nowMs()
        val subscribing = queues.map { (id, queue) ->
            val plain = mapOf("id" to id, "destination" to "/user/queue/$id", "ack" to "client-individual")
            val position = queue.since?.let { mapOf("since" to it) }.orEmpty()
            scope.async(start = CoroutineStart.UNDISPATCHED) { socket.request("SUBSCRIBE", plain + position) }
        }
        val watching = watches.entries.toList().map { (id, watch) ->
            scope.async(start = CoroutineStart.UNDISPATCHED) { subscribe(socket, id, watch) }
        }
        setState(ConnectionState.CONNECTED)
        try {
            subscribing.awaitAll()
            watching.awaitAll()
            if (socket === this.socket) listener.onConnected()
        } catch (error: CallsignException) {
            if (!error.hasCode(LocalCode.OFFLINE)) listener.onTrouble(error)
            socket.abandon()
        }
    }

    /** Does nothing where the connection breaks: the next one tries again. */
    private suspend fun subscribe(socket: StompSocket, id: String, watch: Watch) {
        try {
            socket.request("SUBSCRIBE", mapOf("id" to id, "destination" to watch.destination))
        } catch (error: CallsignException) {
            if (error.hasCode(LocalCode.OFFLINE)) return
            watches.remove(id)
            watch.subscribed.completeExceptionally(error)
            return
        }
        watch.socket = socket
        // Its owner has ended it meanwhile.
        if (id !in watches) socket.tell("UNSUBSCRIBE", mapOf("id" to id))
        watch.subscribed.complete(Unit)
    }

    private fun unwatch(id: String) {
        val watch = watches.remove(id) ?: return
        if (watch.socket === socket) socket?.tell("UNSUBSCRIBE", mapOf("id" to id))
    }

    /** An error that it throws ends the connection. */
    private fun onMessage(socket: StompSocket, frame: StompFrame) {
        if (socket !== this.socket) return
        val id = frame.headers["subscription"].orEmpty()
        val event = objectIn(frame.body) ?: throw answerInvalid()
        val watch = watches[id]
        if (watch != null) return tellWatch(watch, event)
        if (event.text("type") == null || event.text("eventId") == null) throw answerInvalid()
        // A watch that has ended.
        val queue = queues[id] ?: return
        val messageId = frame.headers["ack"]
        if (messageId == null || queue.waiting.size >= WAITING_MAX) throw answerInvalid()
        queue.waiting.addLast(Message(event, messageId, socket))
        if (!queue.isBusy) scope.launch(start = CoroutineStart.UNDISPATCHED) { handleWaiting(queue) }
    }

    private fun tellWatch(watch: Watch, event: JsonObject) {
        try {
            watch.listener(event)
        } catch (error: Exception) {
            listener.onTrouble(error)
        }
    }

    private suspend fun handleWaiting(queue: Queue) {
        queue.isBusy = true
        while (true) {
            val message = queue.waiting.removeFirstOrNull() ?: break
            handle(message.event)
            scope.launch(start = CoroutineStart.UNDISPATCHED) { acknowledge(queue, message) }
            pace()
        }
        queue.isBusy = false
    }

    private suspend fun acknowledge(queue: Queue, message: Message) {
        try {
            message.socket.request("ACK", mapOf("id" to message.id))
            queue.since = message.id
        } catch (_: CallsignException) {
            // It comes again.
        }
    }

    /** Waits where a long backlog would have more acknowledgements sent than the server takes in so short a time. */
    private suspend fun pace() {
        val nowMs = server.nowMs()
        acksUntilMs = maxOf(acksUntilMs, nowMs - ACKS_AT_ONCE * ACK_EVERY_MS) + ACK_EVERY_MS
        if (acksUntilMs > nowMs) delay(acksUntilMs - nowMs)
    }

    private suspend fun handle(event: JsonObject) {
        if (!seen.add(event.needText("eventId"))) return
        if (seen.size > SEEN_MAX) seen.remove(seen.first())
        try {
            listener.onEvent(event)
        } catch (cancelled: CancellationException) {
            throw cancelled
        } catch (error: Exception) {
            listener.onTrouble(error)
        }
    }

    /** Messages that no one has begun with come again on the next connection. */
    private fun forgetWaiting() {
        for (queue in queues.values) queue.waiting.clear()
    }

    /** Another device has an inbox of its own. */
    private fun forgetDevice() {
        seen.clear()
        for (queue in queues.values) queue.since = null
    }

    /** Returns the connection that there is, to be ended by the caller. */
    private fun stop(state: ConnectionState): StompSocket? {
        life?.cancel()
        life = null
        for (watch in watches.values) watch.subscribed.completeExceptionally(offline())
        watches.clear()
        forgetWaiting()
        val present = socket
        socket = null
        setState(state)
        return present
    }

    private fun setState(state: ConnectionState) {
        val isNews = state != this.state || state == ConnectionState.CONNECTING
        this.state = state
        if (isNews) listener.onState(state, failures)
    }

    private companion object {
        val FAULT_CODES = setOf(1002, 1007, 1008, 1009)
        val OVER_REASONS = setOf("token_missing", "token_invalid", "session_revoked")

        /** As many as an inbox holds: what comes again comes out of that. */
        const val SEEN_MAX = 500

        /** The server sends at most 32 without an acknowledgement, and badges. */
        const val WAITING_MAX = 500

        /** The server takes 50 frames in a second, and 200 at once. */
        const val ACK_EVERY_MS = 25L
        const val ACKS_AT_ONCE = 100L
        const val ANSWER_WITHIN_MS = 10_000L
        const val BEAT_MS = 10_000L

        /** A connection that lasted so long was a good one. */
        const val STEADY_MS = 5_000L

        /** The bound of the first pause is two seconds; each failure doubles it. */
        const val PAUSE_MS = 1_000L
        const val PAUSE_MS_MAX = 60_000L
        const val DOUBLINGS_MAX = 6
    }
}
