/**
 * The connection of one device, see docs/protocol/socket.md ("Connect"): it comes back by itself, hands each event of the device's queues
 * over once, in order, and acknowledges what was handled. `connection/Decide.kt` decides; this carries out its acts one after the
 * other, and gives it what comes of them.
 */
package callsign.app

import callsign.app.connection.Act
import callsign.app.connection.DeviceConnection
import callsign.app.connection.Failure
import callsign.app.connection.Input
import callsign.app.connection.confirmedOrNull
import callsign.app.connection.decide
import callsign.app.connection.nextDeadlineMs
import kotlin.random.Random
import kotlin.time.TimeSource
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Job
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.serialization.json.Json
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
    private var connection = DeviceConnection()
    private val startedAt = TimeSource.Monotonic.markNow()

    /** Complete with the id of the watch, if the command is one. */
    private val commands = HashMap<Int, CompletableDeferred<String?>>()
    private var commandCount = 0

    /** By the watch, whose id names its command. */
    private val topics = HashMap<String, (JsonObject) -> Unit>()

    /** Each until its close was judged. */
    private val sockets = HashMap<Int, StompSocket>()

    /** They came while another one was carried out. */
    private val inputs = ArrayDeque<Input>()
    private var isBusy = false
    private var timer: Job? = null
    private var timerAtMs: Long? = null

    /** By a clock that runs evenly. Null without a connection; another one with each. */
    val connectedAtMs: Long? get() = connection.phase.confirmedOrNull?.connectedAtMs

    val state: ConnectionState get() = connection.phase.state

    /** Attempts that failed in a row, those after a short connection too. */
    val failures: Int get() = connection.failures

    /** Connects, and stays connected until [disconnect]. A pause before the next attempt ends at once. */
    fun connect(): Unit = take(Input.Connect)

    /** Returns when the server has carried out what was sent before. Ends all watches. */
    suspend fun disconnect() {
        command { Input.Disconnect(it) }
    }

    /**
     * Subscribes to a topic. Returns the function that ends it when the server has it, which may take until the next
     * connection, and is subscribed again after each reconnection. Throws the server's refusal.
     */
    suspend fun watch(destination: String, listener: (JsonObject) -> Unit): () -> Unit {
        val watch = command {
            topics[watchId(it)] = listener
            Input.Watch(it, destination)
        }
        return { take(Input.Unwatch(checkNotNull(watch))) }
    }

    /**
     * Returns when the server has carried it out, and has it on disk. Throws the server's refusal, `BODY_TOO_LARGE`, or `OFFLINE`;
     * then it may have been carried out.
     */
    suspend fun send(destination: String, body: JsonObject) {
        command { Input.Send(it, destination, "$body") }
    }

    private suspend fun command(inputOf: (Int) -> Input): String? {
        val command = ++commandCount
        val answer = CompletableDeferred<String?>()
        commands[command] = answer
        take(inputOf(command))
        return answer.await()
    }

    /** One input at a time, each with all its acts. */
    private fun take(input: Input) {
        inputs.addLast(input)
        if (isBusy) return
        isBusy = true
        try {
            while (true) {
                val next = inputs.removeFirstOrNull() ?: break
                val nowMs = startedAt.elapsedNow().inWholeMilliseconds
                val decision = decide(connection, next, nowMs, Random.nextDouble())
                connection = decision.connection
                decision.acts.forEach(::carryOut)
                wakeInTime(nowMs)
            }
        } finally {
            isBusy = false
        }
    }

    private fun carryOut(act: Act) {
        when (act) {
            is Act.Asking -> ask(act)
            is Act.EndSession -> scope.launch(start = CoroutineStart.UNDISPATCHED) { session.endBy(errorIn(act.failure)) }
            is Act.HearTime -> server.hearTime(act.serverMs)
            is Act.Open -> open(act)
            is Act.Tell -> sockets[act.socket]?.tell(act.command, act.headers)
            is Act.Abandon -> sockets[act.socket]?.abandon()
            is Act.Topic -> tellTopic(act)
            is Act.Settle -> settle(act)
            is Act.State -> listener.onState(act.state, act.failures)
            is Act.Ready -> scope.launch { reporting(listener::onTrouble) { listener.onConnected() } }
            is Act.Trouble -> listener.onTrouble(act.failure.cause ?: errorIn(act.failure))
        }
    }

    private fun ask(act: Act.Asking) {
        scope.launch(start = CoroutineStart.UNDISPATCHED) {
            val outcome = try {
                outcomeOf(act)
            } catch (error: Exception) {
                // A time-out of the app's own is a failure like any other.
                currentCoroutineContext().ensureActive()
                // Without a session no further attempt can succeed.
                if (isOfSession(act) && session.userId == null) take(Input.Over)
                Input.Failed(act.act, failureOf(error))
            }
            take(outcome)
        }
    }

    private suspend fun outcomeOf(act: Act.Asking): Input.Done {
        when (act) {
            is Act.Token -> return Input.Done(act.act, token = session.accessToken())
            is Act.Request -> {
                val socket = sockets[act.socket] ?: throw offline()
                val headers = socket.request(act.command, act.headers, act.body)
                return Input.Done(act.act, recovered = headers["recovered"])
            }
            is Act.Renew -> session.renew(act.token)
            is Act.Register -> listener.onDeviceMissing()
            is Act.Disconnect -> sockets[act.socket]?.disconnect()
            is Act.Handle -> listener.onEvent(act.event)
        }
        return Input.Done(act.act)
    }

    private fun isOfSession(act: Act.Asking) = act is Act.Token || act is Act.Renew || act is Act.Register

    private fun open(act: Act.Open) {
        val socket = act.socket
        val opened = try {
            opened(act)
        } catch (error: IllegalArgumentException) {
            // The platform takes no such address.
            return take(Input.Closed(socket, 1002, "", 0, failureOf(error)))
        }
        sockets[socket] = opened
        scope.launch {
            val close = opened.closed.await()
            take(Input.Closed(socket, close.code, close.reason, close.retryAfterMs, close.error?.let(::failureOf)))
            sockets -= socket
        }
    }

    private fun opened(act: Act.Open) = StompSocket(
        scope,
        server.http,
        "${server.prefix}/ws",
        act.token,
        server.language,
        heartBeatMs,
        ANSWER_WITHIN_MS,
        onConnected = { _, headers ->
            val serverMs = headers["server-time"]?.toLongOrNull() ?: 0
            take(Input.Connected(act.socket, headers["device"], serverMs))
        },
        onMessage = { _, frame -> onMessage(act.socket, frame) },
    )

    /** An error that it throws ends the connection. */
    private fun onMessage(socket: Int, frame: StompFrame) {
        val event = Json.parseToJsonElement(frame.body)
        take(Input.Message(socket, frame.headers["subscription"].orEmpty(), frame.headers["ack"], event))
    }

    private fun tellTopic(act: Act.Topic) {
        try {
            topics[act.watch]?.invoke(act.event as? JsonObject ?: throw answerInvalid())
        } catch (error: Exception) {
            listener.onTrouble(error)
        }
    }

    private fun settle(act: Act.Settle) {
        val answer = commands.remove(act.command) ?: return
        val error = act.error ?: return Unit.also { answer.complete(act.watch) }
        topics -= watchId(act.command)
        answer.completeExceptionally(error.cause ?: errorIn(error))
    }

    private fun wakeInTime(nowMs: Long) {
        val atMs = nextDeadlineMs(connection)
        if (atMs == timerAtMs) return
        timer?.cancel()
        timerAtMs = atMs
        timer = atMs?.let {
            scope.launch {
                delay(it - nowMs)
                timerAtMs = null
                take(Input.Time)
            }
        }
    }

    private fun watchId(command: Int) = "watch-$command"

    private fun failureOf(error: Exception): Failure {
        val code = (error as? CallsignException)?.code ?: "INTERNAL"
        return Failure(code, error.message, error)
    }

    private fun errorIn(failure: Failure): CallsignException =
        CallsignException(failure.code, failure.message ?: failure.code, failure.cause)

    private companion object {
        const val ANSWER_WITHIN_MS = 10_000L
        const val BEAT_MS = 10_000L
    }
}
