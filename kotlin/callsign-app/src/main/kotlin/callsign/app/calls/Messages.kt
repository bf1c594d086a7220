/** Messages of the queue, and invitations by push. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.endingOf
import callsign.app.gatewayOf
import callsign.app.member
import callsign.app.needNumber
import callsign.app.number
import callsign.app.text
import kotlinx.serialization.json.JsonObject

internal fun Turn.onInvitation(invitation: Invitation) {
    val rings = ringingOf(invitation)
    if (!holds(rings)) ring(rings)
}

internal fun Turn.onQueue(event: JsonObject, command: Int) {
    val type = event.text("type").orEmpty()
    if (type == "call_invitation") {
        onInvitation(invitationOf(event))
        return settle(command)
    }
    val callId = event.text("callId") ?: return settle(command)
    val isRungOut = type in RUNG_OUT
    if (isRungOut) dropHeld(callId)
    val call = call(callId)
    val restoring = device.restoring
    // Such as another device that asks for the key, after a restart of both.
    if (restoring is Restoring.Waiting && (call == null || (!call.isPresent && !isRungOut))) {
        device = device.copy(restoring = Restoring.Waiting(restoring.early + Early(command, event)))
        return
    }
    if (call != null) return onMessage(call, type, event, command)
    // The answer to its start may come later.
    if (type == "call_ended" && device.starts.isNotEmpty()) noteEnd(callId, invitedAtMs = 0)
    settle(command)
}

private fun Turn.onMessage(call: DeviceCall, type: String, event: JsonObject, command: Int) {
    val callId = call.callId
    when (type) {
        "participant_request_rejoin" -> return onAsked(callId, event, command)
        "participant_accept_rejoin" -> return onGranted(callId, event, command)
        "key_update" -> {
            val phase = call.phase as? Phase.RingingIn ?: return onUpdate(callId, event, command)
            onRenewedKey(callId, event, phase.rings)
        }
        "call_cancelled" -> if (!startsAgain(callId)) close(callId, CallEnding.CANCELLED)
        "call_missed" -> onRungOut(callId, CallEnding.MISSED)
        "call_answered_elsewhere" -> onRungOut(callId, endingOf("${event.text("reason")}_elsewhere"))
        "call_moved" -> onMoved(call, event.needNumber("version"))
        "call_ended" -> if (!startsAgain(callId)) close(callId, endingOf(event.text("endReason")))
        "key_missing" -> onKeyMissing(call, event.needNumber("epoch"))
        "media_ready" -> onMedia(call, event)
    }
    settle(command)
}

/** An older one is of before this device came back: its queue was slower than its request. */
private fun Turn.onMoved(call: DeviceCall, version: Long) {
    val record = call.record
    if (call.phase is Phase.Entering) change(call.callId) { copy(movedVersion = version) }
    else if (record == null || version >= record.version || isElsewhere(record)) close(call.callId, CallEnding.MOVED)
}

private fun Turn.onMedia(call: DeviceCall, event: JsonObject) {
    val roomId = event.number("roomId")
    val gateway = gatewayOf(event.member("media"))
    val record = call.record
    // Either the call has left that room since, or the topic was faster: the record says which.
    if (record != null && roomId != record.roomId && event.needNumber("version") < record.version)
        return refresh(call.callId)
    change(call.callId) {
        copy(media = ReadyMedia(roomId, gateway), record = record?.copy(roomId = roomId, media = gateway))
    }
    emit(call.callId, News.Media(gateway))
}

/** A call rings no more after these. */
private val RUNG_OUT =
    setOf("call_cancelled", "call_missed", "call_answered_elsewhere", "call_moved", "call_ended")
