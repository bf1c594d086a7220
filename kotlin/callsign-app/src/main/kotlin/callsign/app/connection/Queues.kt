package callsign.app.connection

import callsign.app.CallsignException.LocalCode
import callsign.app.text
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** Queues of the device: the app handles one message of each at a time, each event once, and it is acknowledged then. */
internal object Queues {
    private val NONSENSE = Failure(LocalCode.ANSWER_INVALID, "The server sent a frame that makes no sense here.")

    /** As many as an inbox holds: what comes again comes out of that. */
    private const val SEEN_MAX = 500

    /** The server sends at most 32 without an acknowledgement, and badges. */
    private const val WAITING_MAX = 500

    /** The server takes 50 frames in a second, and 200 at once. */
    const val ACK_EVERY_MS = 25L
    const val ACKS_AT_ONCE = 100L

    fun onMessage(step: Step, input: Input.Message) {
        val socket = input.socket
        if (step.phase.confirmedOrNull?.opened?.socket != socket) return
        if (step.connection.watches.any { it.id == input.subscription })
            return step.act(Act.Topic(input.subscription, input.event))
        val (event, eventId) = eventIn(input.event) ?: return Attempts.giveUp(step, socket, NONSENSE)
        // A watch that has ended.
        val queue = step.connection.queues.find { it.name == input.subscription } ?: return
        if (input.ack == null || queue.waiting.size >= WAITING_MAX) return Attempts.giveUp(step, socket, NONSENSE)
        changeQueue(step, queue.name) { it.copy(waiting = it.waiting + Message(event, eventId, input.ack, socket)) }
        handleWaiting(step, queue.name)
    }

    /** An event counts as handled when that failed, too. */
    fun onHandled(step: Step, purpose: Purpose.Handle, failure: Failure?) {
        if (failure != null) step.act(Act.Trouble(failure))
        acknowledge(step, purpose.queue, purpose.message)
        handleWaiting(step, purpose.queue)
    }

    /** `since` is of the present connection, or of the last one where there is none. */
    fun onAcknowledged(step: Step, purpose: Purpose.Ack) {
        val present = step.phase.confirmedOrNull?.opened?.socket ?: purpose.socket
        if (present == purpose.socket) changeQueue(step, purpose.queue) { it.copy(since = purpose.messageId) }
    }

    fun onTime(step: Step) {
        for (queue in step.connection.queues) handleWaiting(step, queue.name)
    }

    /** When the next message may be begun with; null where none waits for the time. */
    fun nextMessageMs(connection: DeviceConnection): Long? =
        connection.acksUntilMs.takeIf { connection.queues.any { it.waiting.isNotEmpty() && !isBusy(connection, it.name) } }

    private fun handleWaiting(step: Step, name: String) {
        while (true) {
            val message = step.connection.queues.first { it.name == name }.waiting.firstOrNull() ?: return
            if (isBusy(step.connection, name)) return
            // A long backlog would have more acknowledgements sent than the server takes in so short a time.
            if (step.connection.acksUntilMs > step.nowMs) return
            changeQueue(step, name) { it.copy(waiting = it.waiting.drop(1)) }
            if (isNew(step, message.eventId))
                step.act(Act.Handle(step.wait(Purpose.Handle(name, message)), message.event))
            else acknowledge(step, name, message)
        }
    }

    /** One of a connection that has broken comes again. */
    private fun acknowledge(step: Step, queue: String, message: Message) {
        val socket = message.socket
        if (step.phase.openedOrNull?.socket != socket) return
        val id = message.messageId
        step.request(socket, "ACK", mapOf("id" to id), Purpose.Ack(queue, id, socket))
        val sinceMs = maxOf(step.connection.acksUntilMs, step.nowMs - ACKS_AT_ONCE * ACK_EVERY_MS)
        step.connection = step.connection.copy(acksUntilMs = sinceMs + ACK_EVERY_MS)
    }

    private fun isNew(step: Step, eventId: String): Boolean {
        val seen = step.connection.seen
        if (eventId in seen) return false
        step.connection = step.connection.copy(seen = (seen + eventId).takeLast(SEEN_MAX))
        return true
    }

    private fun isBusy(connection: DeviceConnection, name: String) =
        connection.waiting.any { (it.purpose as? Purpose.Handle)?.queue == name }

    /** With its id. */
    private fun eventIn(element: JsonElement): Pair<JsonObject, String>? {
        val event = element as? JsonObject ?: return null
        val type = event["type"] as? JsonPrimitive
        val eventId = event.text("eventId") ?: return null
        return if (type?.isString == true) event to eventId else null
    }

    private fun changeQueue(step: Step, name: String, change: (Queue) -> Queue) {
        val queues = step.connection.queues.map { if (it.name == name) change(it) else it }
        step.connection = step.connection.copy(queues = queues)
    }
}
