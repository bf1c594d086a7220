// The end of a call for this device, and reports of failures.

extension Turn {
    /// Ends it for this device, also where it is invited once more by what was sent before.
    func close(_ callId: String, _ reason: CallEnding, isOver: Bool? = nil) {
        guard let call = call(callId) else { return }
        endHere(call, reason)
        noteEnd(callId, invitedAtMs: call.invitedAtMs)
        if let key = call.latestKey, isOver ?? over.contains(reason) { noteOpened(callId, key.epoch, isOver: true) }
        // Should it fail, the next start finds that the call has ended.
        forget(callId)
    }

    /// An invitation from before then does not ring any more.
    func noteEnd(_ callId: String, invitedAtMs: Int) {
        // By this clock the invitation may not have been made yet.
        let atMs = max(invitedAtMs, serverMs)
        let ended = device.ended.filter { $0.callId != callId } + [EndedCall(callId: callId, atMs: atMs)]
        device.ended = ended.suffix(endedMax)
    }

    /// The server may have let it in after it ended here. One that the next start asks for is left as it is.
    func leaveUnknown(_ callId: String) {
        if device.kept.callId != callId { sendLeave(callId) }
    }

    /// Leaves it, whatever becomes of the request: the server hears of it at the latest with the next connection.
    func sendLeave(_ callId: String, _ command: Int? = nil) {
        var kept = device.kept
        kept.leaving = (kept.leaving.filter { $0 != callId } + [callId]).suffix(leavingMax)
        if kept.callId == callId { kept.callId = nil }
        keep(kept)
        request("POST", "call/\(callId)/leave", .leave(callId: callId, command: command))
    }

    /// Rejects what waits for it. It may ring again, or be resumed.
    func endHere(_ call: DeviceCall, _ reason: CallEnding) {
        enterPhase(call.callId, .ended(reason))
        if call.topic != .off { act(.unwatch(callId: call.callId)) }
        settleAll(commandsOf(call), hasEndedHere())
    }

    /// The queue says why it has ended, if it reaches this device; a moment later the call ends without a reason. A connection
    /// that comes back meanwhile has as long.
    func closeSoon(_ callId: String) {
        change(callId) { $0.end = .reason(atMs: nowMs + reasonWaitMs, connection: device.connection) }
    }

    /// No reason came in time.
    func onReasonDue(_ call: DeviceCall) {
        switch call.end {
        case .reconnection: close(call.callId, .unknown)
        case .reason(_, let connection?) where connection == device.connection: close(call.callId, .unknown)
        default: change(call.callId) { $0.end = .reconnection(atMs: nowMs + reconnectionWaitMs) }
        }
    }

    /// Tells the app of what a call does by itself and could not do.
    func report(_ callId: String, _ failure: CallsignError) {
        guard call(callId) != nil else { return }
        // The answer was faster than the message that says why.
        if failure.hasCode("CALL_ENDED") { return closeSoon(callId) }
        emit(callId, .failed(failure))
    }

    /// Whether it ended here after this time of an invitation; the server may not know yet.
    func hasEnded(_ callId: String, invitedAtMs: Int) -> Bool {
        device.ended.contains { $0.callId == callId && invitedAtMs <= $0.atMs }
    }

    /// The next start does not ask for it, but for another one that this device is in.
    func forget(_ callId: String) {
        guard device.kept.callId == callId else { return }
        var kept = device.kept
        kept.callId = device.calls.first { $0.callId != callId && $0.isIn }?.callId
        keep(kept)
    }
}

private func commandsOf(_ call: DeviceCall) -> [Int] {
    (call.phase.entering?.commands ?? []) + (call.rotation.renewing?.commands ?? [])
}

func hasEndedHere() -> CallsignError { CallsignError("CALL_NOT_ACTIVE", "The call has ended here.") }

/// For all: any other call may be come back to by the key that it has.
private let over: Set<CallEnding> = [.hangup, .cancelled, .declined, .unanswered, .callerLost, .empty, .alone, .limit]
private let endedMax = 100
private let leavingMax = 10
private let reasonWaitMs = 2_000
private let reconnectionWaitMs = 30_000
