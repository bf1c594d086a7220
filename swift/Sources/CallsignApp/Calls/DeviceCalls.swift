// Decides the calls of one device, as `src/app/calls/device-call.ts` does: an input (Input.swift) and the time go in; the
// device's new state (Device.swift) and the acts to carry out (Act.swift) come out. Both play the same stories
// (test/vectors/device-calls.jsonl). The shell carries out the acts in their order, gives each outcome back as an input, and says
// `time` at `nextDeadlineMs`.

struct CallDecision: Sendable {
    var device: Device
    var acts: [CallAct]
}

/// Throws `ANSWER_INVALID` where the server tells nonsense.
func decide(_ before: Device, _ input: CallInput, nowMs: Int) throws -> CallDecision {
    var device = before
    device.calls.removeAll { $0.phase.isEnded }
    let turn = Turn(device, nowMs: nowMs)
    try turn.onInput(input)
    var keys = keysIn(before)
    if case .done(let done) = input, let key = done.key { keys.append(key) }
    turn.wipeUnused(keys)
    return CallDecision(device: turn.device, acts: turn.acts)
}

/// When `time` is to be said, if nothing else comes; nil where nothing is to happen by itself.
func nextDeadlineMs(_ device: Device) -> Int? { device.calls.flatMap(deadlinesOf).map(\.atMs).min() }

private struct Deadline {
    let atMs: Int
    let run: (Turn) -> Void

    init(_ atMs: Int, _ run: @escaping (Turn) -> Void) {
        self.atMs = atMs
        self.run = run
    }
}

extension Turn {
    fileprivate func onInput(_ input: CallInput) throws {
        switch input {
        case .startCall(let command, let callId, let userIds, let options):
            startCall(Crossed(command: command, callId: callId, userIds: userIds, options: options))
        case .ofCall(let command, let callId, let asked): onCommand(command, callId, asked)
        case .close(let reason):
            closeStarts(reason)
            // They may ring again, or be come back to.
            for call in device.calls { endHere(call, reason) }
        case .invited(let invitation): onInvitation(invitation)
        case .cancelled(let callId, let reason):
            dropHeld(callId)
            if call(callId)?.phase.rings != nil { close(callId, reason) }
        case .queue(let command, let event): try onQueue(event, command)
        case .topic(let callId, let event): try onTopic(callId, event)
        case .done(let done): try onDone(done)
        case .failed(let act, let failure): onFailed(act, failure)
        case .time: onTime()
        case .restarted(let kept): device.kept = kept
        case .connected(let command, let connection, let kept): onConnected(command, connection, kept)
        case .disconnected: device.connection = nil
        case .setClock(let clock): device.clock = clock
        }
    }

    private func onTime() {
        for call in device.calls {
            for deadline in deadlinesOf(call) where deadline.atMs <= nowMs { deadline.run(self) }
        }
    }
}

private func deadlinesOf(_ call: DeviceCall) -> [Deadline] {
    let callId = call.callId
    var all: [Deadline] = []
    switch call.phase {
    case .ended: return []
    case .ringingIn(let rings): all.append(Deadline(rings.untilMs) { $0.onRingDue(callId) })
    case .rejoining(.asked(let untilMs)), .keyless(.asked(let untilMs)):
        all.append(Deadline(untilMs) { $0.onNobodyGrants(callId) })
    case .rejoining(.pausing(let untilMs)), .keyless(.pausing(let untilMs)):
        all.append(Deadline(untilMs) { $0.askAgain(callId) })
    case .rejoining, .keyless, .ringingOut, .entering, .active: break
    }
    if let planned = call.rotation.planned { all.append(Deadline(planned.atMs) { $0.onRotationDue(callId) }) }
    for due in call.sending.uses { all.append(Deadline(due.atMs) { $0.use(callId, due.epoch) }) }
    for due in call.sending.drops { all.append(Deadline(due.atMs) { $0.drop(callId, due.epoch) }) }
    if let offer = call.offer { all.append(Deadline(offer.atMs) { $0.onOfferDue(callId) }) }
    // While it asks for another key, it sends with this one.
    let isInUse = call.phase == .active || (call.isAsking && call.sending.epoch > 0)
    if isInUse && !call.key.held.isEmpty { all.append(Deadline(call.outdatedAtMs) { $0.onOutdated(callId) }) }
    switch call.end {
    case .open: break
    case .reason(let atMs, _), .reconnection(let atMs): all.append(Deadline(atMs) { $0.onReasonDue(call) })
    }
    return all
}
