/** After each connection: what this device has left, what rings, and the call that it was in. */
package callsign.app.calls

import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.ParticipantState
import callsign.app.answerInvalid
import callsign.app.isOver

internal fun Turn.onConnected(input: Input.Connected) {
    val (command, connection, kept) = input
    device = device.copy(connection = connection, kept = kept)
    leaveKept(command, kept, kept.leaving)
}

/** The server hears of a leave after the other: the answer to each goes on with the next. */
internal fun Turn.leaveKept(command: Int, kept: Kept, leaving: List<String>) {
    // A device does not leave a call that its user is on the way back into.
    val callId = leaving.find { call(it)?.isPresent != true } ?: return readPending(command, kept)
    request("POST", "call/$callId/leave", Purpose.KeptLeave(callId, command, kept))
}

/** Asks for the calls that ring. */
private fun Turn.readPending(command: Int, kept: Kept) = request("GET", "call/pending", Purpose.Pending(command, kept))

internal fun Turn.onPending(items: List<CallRecord>, command: Int, kept: Kept) {
    for (record in items) {
        val rings = ringingIn(record) ?: continue
        // One that a push has woken could not say it before.
        if (record.participant(device.userId)?.state == ParticipantState.INVITED) tellRinging(rings.callId)
        if (!holds(rings)) ring(rings)
    }
    for (call in device.calls) {
        refresh(call.callId, command)
        if (call.isAsking) askAgain(call.callId)
    }
    val callId = kept.callId
    val call = callId?.let { call(it) }
    val phase = call?.phase
    // It was answered before the restart, and the server may hear of that yet.
    if (phase is Phase.RingingIn) change(call.callId) { copy(phase = Phase.RingingIn(phase.rings.copy(mayBeIn = true))) }
    if (callId == null || call != null) restored()
    else request("GET", "call/$callId", Purpose.Restore(callId, command))
}

/** The app was in a call when it ended. */
internal fun Turn.onRestored(keptId: String, record: CallRecord?, command: Int?) {
    val own = record?.participant(device.userId)
    val isIn = own?.deviceId == device.deviceId && own.state in setOf(ParticipantState.JOINED, ParticipantState.LOST)
    if (record == null || own == null || isOver(record.status) || !isIn) {
        forget(keptId)
    } else if (call(keptId) == null && device.kept.callId != keptId) {
        // It was left for another one meanwhile, or has ended here.
        sendLeave(keptId)
    } else if (call(record.callId) == null) {
        add(record, record.person(own.invitedBy), Phase.RingingOut)
        emit(record.callId, News.Resumed)
        if (record.status == "active") ask(record)
        // The key that was sent is gone with the app, and no other device has it.
        else request("POST", "call/${record.callId}/end", Purpose.GiveUp(record.callId, command))
    }
    restored()
}

/** The next try restores it: messages of unknown calls need not wait for that. */
internal fun Turn.notRestored(command: Int?, failure: CallsignException) {
    restored()
    failConnected(command, failure)
}

/** Its other acts go on without it. */
internal fun Turn.failConnected(command: Int?, failure: CallsignException) {
    val waiting = device.waiting.map { one ->
        val purpose = one.purpose
        if (purpose is Purpose.OfConnection && purpose.command == command) one.copy(purpose = purpose.withoutCommand()) else one
    }
    device = device.copy(waiting = waiting)
    settle(command, failure)
}

/** Settles a command that waits for several acts. */
internal fun Turn.settleWhenDone(command: Int?) {
    if (command != null && device.waiting.none { it.purpose.command == command }) settle(command)
}

private fun Turn.restored() {
    val restoring = device.restoring
    device = device.copy(restoring = Restoring.Restored)
    if (restoring is Restoring.Waiting) restoring.early.forEach(::onEarly)
}

/** One that makes no sense fails alone: without the others, and the call that they have waited for, nothing would go on. */
private fun Turn.onEarly(early: Early) = try {
    onQueue(early.event, early.command)
} catch (cause: CallsignException) {
    settle(early.command, answerInvalid(cause))
}
