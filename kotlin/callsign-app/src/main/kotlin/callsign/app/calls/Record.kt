/** A call that this device is in: its record, its topic and its keys. */
package callsign.app.calls

import callsign.app.CallRecord
import callsign.app.CallsignException
import callsign.app.ParticipantState
import callsign.app.hasCode

/** Goes on with a call that this device is in. */
internal fun Turn.begin(record: CallRecord, phase: Phase) {
    val callId = record.callId
    if (call(callId) == null) return
    // Without it the next start does not know of the call; this one does.
    keep(device.kept.copy(callId = callId, leaving = device.kept.leaving - callId))
    // An end that a request told before is not this one's: the server has let this device in since.
    change(callId) { copy(record = record, end = EndState.None) }
    enterPhase(callId, phase)
    plan(callId, record)
    // The topic may have told of changes since the record was made.
    if (call(callId)?.topic == TopicState.ON) refresh(callId) else watch(callId)
}

/** With its key, the call goes on here. */
internal fun Turn.enter(record: CallRecord, key: HeldKey) {
    val wasAway = call(record.callId)?.isAsking == true
    begin(record, if (record.status == "ringing") Phase.RingingOut else Phase.Active)
    hold(record.callId, key, wasAway = wasAway)
}

/** Events of the topic that this device has missed are in the record. */
internal fun Turn.refresh(callId: String, command: Int? = null, again: Int = 0) {
    val call = call(callId)
    // While it joins, the server may not have this device in the call yet.
    if (call?.record == null || !call.isPresent) return
    watch(callId)
    request("GET", "call/$callId", Purpose.Refresh(callId, command, again))
}

internal fun Turn.onNotRefreshed(callId: String, failure: CallsignException, command: Int?) {
    if (failure.isGone) return closeSoon(callId)
    // The topic may never tell again of events that this would have shown.
    val isDue = command == null && device.connection != null && failure.hasCode("NO_ANSWER")
    if (isDue) refresh(callId) else report(callId, failure)
}

internal fun Turn.onWatched(callId: String) {
    if (call(callId) == null) return act(Act.Unwatch(callId))
    change(callId) { copy(topic = TopicState.ON) }
    refresh(callId)
}

internal fun Turn.onNotWatched(callId: String, failure: CallsignException) {
    change(callId) { copy(topic = TopicState.OFF) }
    report(callId, failure)
}

/** Whether the user is in it with another device. */
internal fun Turn.isElsewhere(record: CallRecord): Boolean {
    val own = record.participant(device.userId)
    return own?.state == ParticipantState.JOINED && own.deviceId != device.deviceId
}

private fun Turn.watch(callId: String) {
    if (call(callId)?.topic != TopicState.OFF) return
    change(callId) { copy(topic = TopicState.COMING) }
    act(Act.Watch(wait(Purpose.Watch(callId)), callId))
}
