// After each connection: what this device has left, what rings, and the call that it was in.

extension Turn {
    func onConnected(_ command: Int, _ connection: Int, _ kept: Kept) {
        device.connection = connection
        device.kept = kept
        leaveKept(command, kept, kept.leaving)
    }

    /// The server hears of a leave after the other: the answer to each goes on with the next.
    func leaveKept(_ command: Int, _ kept: Kept, _ leaving: [String]) {
        // A device does not leave a call that its user is on the way back into.
        guard let callId = leaving.first(where: { call($0)?.isPresent != true }) else { return readPending(command, kept) }
        request("POST", "call/\(callId)/leave", .keptLeave(.init(callId: callId, command: command, kept: kept)))
    }

    /// Asks for the calls that ring.
    private func readPending(_ command: Int, _ kept: Kept) {
        request("GET", "call/pending", .pending(command: command, kept: kept))
    }

    func onPending(_ items: [CallRecord], _ command: Int, _ kept: Kept) {
        for record in items {
            guard let rings = ringingIn(record) else { continue }
            // One that a push has woken could not say it before.
            if record.participant(device.userId)?.state == .invited { tellRinging(rings.callId) }
            if !holds(rings) { ring(rings) }
        }
        for call in device.calls {
            refresh(call.callId, command: command)
            if call.isAsking { askAgain(call.callId) }
        }
        let keptCall = kept.callId.flatMap { call($0) }
        // It was answered before the restart, and the server may hear of that yet.
        if let keptCall, var rings = keptCall.phase.rings {
            rings.mayBeIn = true
            change(keptCall.callId) { $0.phase = .ringingIn(rings) }
        }
        guard let callId = kept.callId, keptCall == nil else { return restored() }
        request("GET", "call/\(callId)", .restore(callId: callId, command: command))
    }

    /// The app was in a call when it ended.
    func onRestored(_ keptId: String, _ record: CallRecord?, _ command: Int?) {
        if let record, let own = record.participant(device.userId), !isOver(record.status),
            own.deviceId == device.deviceId, own.state == .joined || own.state == .lost
        {
            goOn(keptId, record, own, command)
        } else {
            forget(keptId)
        }
        restored()
    }

    private func goOn(_ keptId: String, _ record: CallRecord, _ own: CallParticipant, _ command: Int?) {
        // It was left for another one meanwhile, or has ended here.
        if call(keptId) == nil && device.kept.callId != keptId { return sendLeave(keptId) }
        guard call(record.callId) == nil else { return }
        add(record, record.person(own.invitedBy), .ringingOut)
        emit(record.callId, .resumed)
        if record.status == "active" { return ask(record) }
        // The key that was sent is gone with the app, and no other device has it.
        request("POST", "call/\(record.callId)/end", .giveUp(callId: record.callId, command: command))
    }

    /// The next try restores it: messages of unknown calls need not wait for that.
    func notRestored(_ command: Int?, _ failure: CallsignError) {
        restored()
        failConnected(command, failure)
    }

    /// Its other acts go on without it.
    func failConnected(_ command: Int?, _ failure: CallsignError) {
        device.waiting = device.waiting.map {
            CallWaiting(act: $0.act, purpose: $0.purpose.without(connected: command))
        }
        settle(command, failure)
    }

    /// Settles a command that waits for several acts.
    func settleWhenDone(_ command: Int?) {
        if let command, !device.waiting.contains(where: { $0.purpose.command == command }) { settle(command) }
    }

    private func restored() {
        let restoring = device.restoring
        device.restoring = .restored
        if case .waiting(let early) = restoring { early.forEach(onEarly) }
    }

    /// One that makes no sense fails alone: without the others, and the call that they have waited for, nothing would go on.
    private func onEarly(_ early: Early) {
        do {
            try onQueue(early.event, early.command)
        } catch {
            settle(early.command, answerInvalid(error))
        }
    }
}
