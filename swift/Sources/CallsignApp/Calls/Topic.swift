// A call's record and the events of its topic; the greater version wins.

import CallsignVerify

extension Turn {
    /// Takes the record of an answer, unless it is older than the one here. Gives whether it did.
    @discardableResult func showIfNewer(_ callId: String, _ record: CallRecord) -> Bool {
        guard let shown = call(callId)?.record, record.version >= shown.version else { return false }
        show(record)
        return true
    }

    func onRefreshed(_ callId: String, _ record: CallRecord, _ again: Int) {
        // Events of the topic that came after it may stand on one that the topic had not told. A server may lag behind it for
        // long.
        if !showIfNewer(callId, record) && again < againMax { refresh(callId, again: again + 1) }
        onBehind(callId)
    }

    func onTopic(_ callId: String, _ event: [String: JSONValue]) throws {
        let type = event.text("type")
        if type == "participant_unreachable" { return try onUnreachable(callId, event) }
        guard let record = call(callId)?.record else { return }
        guard try event.needNumber("version") >= record.version else { return }
        let changed = try record.changedBy(event)
        change(callId) { $0.record = changed }
        if type == "host_changed" { onHostChanged(callId) }
        if type == "call_status", isOver(try event.needText("status")) { closeSoon(callId) }
        if event["participant"] == nil || type == "media_changed" { return }
        onParticipant(callId, try participantOf(event.member("participant")), changed)
    }

    private func onParticipant(_ callId: String, _ participant: CallParticipant, _ changed: CallRecord) {
        emit(callId, .participant(participant))
        let isOwn = participant.userId == device.userId
        if call(callId)?.phase == .ringingOut && participant.state == .joined {
            var answered = changed
            answered.startedAtMs = serverMs
            onAnswered(answered)
        }
        let isGone = gone.contains(participant.state)
        // A leave of before this device came back may be carried out late.
        if isGone && isOwn, let shown = call(callId)?.record { return show(shown) }
        if isGone && !isOwn { planAfterLeaving(callId) }
        fit(callId)
    }

    private func show(_ record: CallRecord) {
        let callId = record.callId
        if isOver(record.status) { return close(callId, endingOf(record.endReason)) }
        change(callId) { $0.record = record }
        guard let call = call(callId) else { return }
        let own = record.participant(device.userId)
        if own?.state == .removed { return close(callId, .removed) }
        if !call.isAsking {
            if own?.state == .left { return close(callId, .left) }
            if isElsewhere(record) { return close(callId, .moved) }
            // The network was away for longer than the server waits; they may have been invited again since.
            if let own, own.state != .joined { return ask(record) }
        }
        if call.phase == .ringingOut && record.status == "active" { onAnswered(record) }
        fit(callId)
    }

    /// A hint, whatever its version: it changes nothing of the record, and holds as long as the person is to answer.
    private func onUnreachable(_ callId: String, _ event: [String: JSONValue]) throws {
        let userId = try event.needId("userId")
        guard let call = call(callId), let participant = call.record?.participant(userId) else { return }
        if participant.state != .invited || unreachable(in: call, participant) != nil { return }
        let unreachable = Unreachable(
            userId: userId, invitedAtMs: participant.invitedAtMs, hasUnapprovedDevice: event.flag("hasUnapprovedDevice"))
        change(callId) { $0.unreachable = $0.unreachable.filter { $0.userId != userId } + [unreachable] }
        emit(callId, .participant(participant.reached(as: unreachable)))
    }

    /// A callee is in. A caller that has restarted meanwhile asks them for the key.
    private func onAnswered(_ record: CallRecord) {
        let callId = record.callId
        if call(callId)?.newestKey == nil { return ask(record) }
        change(callId) { $0.record = record }
        enterPhase(callId, .active)
    }
}

private let gone: Set<ParticipantState> = [.left, .lost, .removed]
private let againMax = 3
