/** Data of a device's connection, all of it immutable, so that each language runs the same stories. */
package callsign.app.connection

import callsign.app.ConnectionState
import kotlinx.serialization.json.JsonObject

internal data class DeviceConnection(
    val phase: Phase = Phase.Off,
    /** Attempts that failed in a row, those after a short connection too. */
    val failures: Int = 0,
    /** As the server knows it; null before the first connection. */
    val deviceId: String? = null,
    val queues: List<Queue> = listOf("account", "contacts", "calls").map { Queue(it) },
    val watches: List<Watch> = emptyList(),
    /** Ids of events, the oldest first. */
    val seen: List<String> = emptyList(),
    /** By the pace of acknowledgements, when there were as many as were sent. */
    val acksUntilMs: Long = -Queues.ACKS_AT_ONCE * Queues.ACK_EVERY_MS,
    /** Acts whose outcome is still to come, also after the phase that they began in. */
    val waiting: List<Waiting> = emptyList(),
    /** Counts acts and sockets. */
    val count: Int = 0,
)

/** [state] is the one that an app sees. */
internal sealed class Phase(val state: ConnectionState = ConnectionState.CONNECTING) {
    data object Off : Phase(ConnectionState.OFF)

    data object Elsewhere : Phase(ConnectionState.ELSEWHERE)

    data class Token(val act: Int) : Phase()

    data class Opening(val opened: Opened) : Phase()

    /**
     * [left]: acts of the subscriptions without an answer so far. [recovered]: whether each queue goes on behind `since`, as its
     * RECEIPT says: `true`, `false`, or nothing.
     */
    data class Subscribing(val confirmed: Confirmed, val left: List<Int>, val recovered: List<String?> = emptyList()) :
        Phase(ConnectionState.CONNECTED)

    data class Connected(val confirmed: Confirmed) : Phase(ConnectionState.CONNECTED)

    /** The next attempt waits for a new token. */
    data class Renewing(val act: Int, val retryAfterMs: Long) : Phase()

    /** The next attempt waits for the device to be registered. */
    data class Registering(val act: Int, val retryAfterMs: Long) : Phase()

    data class Pausing(val untilMs: Long) : Phase()
}

internal data class Opened(val socket: Int, val token: String)

internal data class Confirmed(val opened: Opened, val connectedAtMs: Long)

/** The connection that the server has confirmed. */
internal val Phase.confirmedOrNull: Confirmed?
    get() = when (this) {
        is Phase.Subscribing -> confirmed
        is Phase.Connected -> confirmed
        else -> null
    }

/** The socket that there is. */
internal val Phase.openedOrNull: Opened?
    get() = if (this is Phase.Opening) opened else confirmedOrNull?.opened

/** [since]: the last message whose acknowledgement the server has on disk. */
internal data class Queue(val name: String, val waiting: List<Message> = emptyList(), val since: String? = null)

/** [messageId]: the header `ack`. */
internal data class Message(val event: JsonObject, val eventId: String, val messageId: String, val socket: Int)

/** [command]: the app's, until it is settled. [socket]: the one that it is subscribed on. */
internal data class Watch(val id: String, val destination: String, val command: Int?, val socket: Int? = null)

/** An act whose outcome comes as an input with the same number, and what it is for. */
internal data class Waiting(val act: Int, val purpose: Purpose)

internal sealed interface Purpose {
    data class Queue(val socket: Int) : Purpose

    data class Watch(val socket: Int, val id: String) : Purpose

    data class Handle(val queue: String, val message: Message) : Purpose

    data class Ack(val queue: String, val messageId: String, val socket: Int) : Purpose

    data class Send(val command: Int) : Purpose

    data class Disconnect(val command: Int) : Purpose
}

/** An error as data; [cause] is the one that it was made from. */
internal data class Failure(val code: String, val message: String? = null, val cause: Throwable? = null)
