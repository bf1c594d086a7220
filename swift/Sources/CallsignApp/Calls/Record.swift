// A call that this device is in: its record, its topic and its keys.

extension Turn {
    /// Goes on with a call that this device is in.
    func begin(_ record: CallRecord, _ phase: CallPhase) {
        let callId = record.callId
        if call(callId) == nil { return }
        // Without it the next start does not know of the call; this one does.
        var kept = device.kept
        kept.callId = callId
        kept.leaving.removeAll { $0 == callId }
        keep(kept)
        change(callId) {
            $0.record = record
            // An end that a request told before is not this one's: the server has let this device in since.
            $0.end = .open
        }
        enterPhase(callId, phase)
        plan(callId, record)
        // The topic may have told of changes since the record was made.
        if call(callId)?.topic == .on { refresh(callId) } else { watch(callId) }
    }

    /// With its key, the call goes on here.
    func enter(_ record: CallRecord, _ key: HeldKey) {
        let wasAway = call(record.callId)?.isAsking == true
        begin(record, record.status == "ringing" ? .ringingOut : .active)
        hold(record.callId, key, wasAway: wasAway)
    }

    /// Events of the topic that this device has missed are in the record.
    func refresh(_ callId: String, command: Int? = nil, again: Int = 0) {
        // While it joins, the server may not have this device in the call yet.
        guard let call = call(callId), call.record != nil, call.isPresent else { return }
        watch(callId)
        request("GET", "call/\(callId)", .refresh(callId: callId, command: command, again: again))
    }

    func onNotRefreshed(_ callId: String, _ failure: CallsignError, _ command: Int?) {
        if failure.isGone { return closeSoon(callId) }
        // The topic may never tell again of events that this would have shown.
        let isDue = command == nil && device.connection != nil && failure.hasCode("NO_ANSWER")
        if isDue { refresh(callId) } else { report(callId, failure) }
    }

    func onWatched(_ callId: String) {
        if call(callId) == nil { return act(.unwatch(callId: callId)) }
        change(callId) { $0.topic = .on }
        refresh(callId)
    }

    func onNotWatched(_ callId: String, _ failure: CallsignError) {
        change(callId) { $0.topic = .off }
        report(callId, failure)
    }

    /// Whether the user is in it with another device.
    func isElsewhere(_ record: CallRecord) -> Bool {
        guard let own = record.participant(device.userId) else { return false }
        return own.state == .joined && own.deviceId != device.deviceId
    }

    private func watch(_ callId: String) {
        if call(callId)?.topic != .off { return }
        change(callId) { $0.topic = .coming }
        act(.watch(act: wait(.watch(callId: callId)), callId: callId))
    }
}
