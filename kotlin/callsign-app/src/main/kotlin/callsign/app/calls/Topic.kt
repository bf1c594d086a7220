/** A call's record and the events of its topic; the greater version wins. */
package callsign.app.calls

import callsign.app.CallEnding
import callsign.app.CallRecord
import callsign.app.ParticipantState
import callsign.app.endingOf
import callsign.app.flag
import callsign.app.isOver
import callsign.app.member
import callsign.app.needId
import callsign.app.needNumber
import callsign.app.needText
import callsign.app.participantOf
import callsign.app.text
import kotlinx.serialization.json.JsonObject

/** Takes the record of an answer, unless it is older than the one here. Gives whether it did. */
internal fun Turn.showIfNewer(callId: String, record: CallRecord): Boolean {
    val shown = call(callId)?.record ?: return false
    if (record.version < shown.version) return false
    show(record)
    return true
}

internal fun Turn.onRefreshed(callId: String, record: CallRecord, again: Int) {
    // Events of the topic that came after it may stand on one that the topic had not told. A server may lag behind it for long.
    if (!showIfNewer(callId, record) && again < AGAIN_MAX) refresh(callId, again = again + 1)
    onBehind(callId)
}

internal fun Turn.onTopic(callId: String, event: JsonObject) {
    if (event.text("type") == "participant_unreachable") return onUnreachable(callId, event)
    val record = call(callId)?.record ?: return
    if (event.needNumber("version") < record.version) return
    val changed = record.changedBy(event)
    change(callId) { copy(record = changed) }
    if (event.text("type") == "host_changed") onHostChanged(callId)
    if (event.text("type") == "call_status" && isOver(event.needText("status"))) closeSoon(callId)
    if ("participant" !in event || event.text("type") == "media_changed") return
    val participant = participantOf(event.member("participant"))
    emit(callId, News.Participant(participant))
    val isOwn = participant.userId == device.userId
    if (call(callId)?.phase == Phase.RingingOut && participant.state == ParticipantState.JOINED)
        onAnswered(changed.copy(startedAtMs = serverMs))
    val shown = call(callId)?.record
    val isGone = participant.state in GONE
    // A leave of before this device came back may be carried out late.
    if (isGone && isOwn && shown != null) return show(shown)
    if (isGone && !isOwn) planAfterLeaving(callId)
    fit(callId)
}

private fun Turn.show(record: CallRecord) {
    val callId = record.callId
    if (isOver(record.status)) return close(callId, endingOf(record.endReason))
    change(callId) { copy(record = record) }
    val call = call(callId) ?: return
    val own = record.participant(device.userId)
    if (own?.state == ParticipantState.REMOVED) return close(callId, CallEnding.REMOVED)
    if (!call.isAsking) {
        if (own?.state == ParticipantState.LEFT) return close(callId, CallEnding.LEFT)
        if (isElsewhere(record)) return close(callId, CallEnding.MOVED)
        // The network was away for longer than the server waits; they may have been invited again since.
        if (own != null && own.state != ParticipantState.JOINED) return ask(record)
    }
    if (call.phase == Phase.RingingOut && record.status == "active") onAnswered(record)
    fit(callId)
}

/** A hint, whatever its version: it changes nothing of the record, and holds as long as the person is to answer. */
private fun Turn.onUnreachable(callId: String, event: JsonObject) {
    val call = call(callId) ?: return
    val userId = event.needId("userId")
    val participant = call.record?.participant(userId) ?: return
    if (participant.state != ParticipantState.INVITED || unreachableIn(call, participant) != null) return
    val others = call.unreachable.filter { it.userId != userId }
    val unreachable = Unreachable(userId, participant.invitedAtMs, event.flag("hasUnapprovedDevice"))
    change(callId) { copy(unreachable = others + unreachable) }
    emit(callId, News.Participant(participant.reachedAs(unreachable)))
}

/** A callee is in. A caller that has restarted meanwhile asks them for the key. */
private fun Turn.onAnswered(record: CallRecord) {
    val callId = record.callId
    if (call(callId)?.newestKey == null) return ask(record)
    change(callId) { copy(record = record) }
    enterPhase(callId, Phase.Active)
}

private val GONE = setOf(ParticipantState.LEFT, ParticipantState.LOST, ParticipantState.REMOVED)
private const val AGAIN_MAX = 3
