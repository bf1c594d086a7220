// One step of a device: an input comes in, and with the device as it is then go the acts.

import CallsignVerify

/// One step: the device as it becomes, and the acts so far.
final class Turn {
    var device: Device
    let nowMs: Int
    private(set) var acts: [CallAct] = []
    private var made: [Int] = []

    init(_ device: Device, nowMs: Int) {
        self.device = device
        self.nowMs = nowMs
    }

    var serverMs: Int { nowMs + device.clock.aheadMs }

    /// Nil for one that is not there, or has ended.
    func call(_ callId: String) -> DeviceCall? { device.calls.first { $0.callId == callId && !$0.phase.isEnded } }

    /// One that has ended stays as it is. `change` may read this turn, and changes nothing but the call.
    func change(_ callId: String, _ change: (inout DeviceCall) -> Void) {
        guard let at = device.calls.firstIndex(where: { $0.callId == callId && !$0.phase.isEnded }) else { return }
        var call = device.calls[at]
        change(&call)
        device.calls[at] = call
    }

    /// With an event where the app sees another state.
    func enterPhase(_ callId: String, _ phase: CallPhase) {
        guard let before = call(callId) else { return }
        change(callId) { $0.phase = phase }
        let state = stateOf(phase)
        if state != stateOf(before.phase) { emit(callId, .state(state)) }
    }

    func act(_ act: CallAct) { acts.append(act) }

    func emit(_ callId: String, _ news: News) { act(.emit(callId: callId, news)) }

    /// Overwrites those of these keys, and of all that were made in this step, that nothing has a use for any more.
    func wipeUnused(_ keys: [Int]) {
        var unused: [Int] = []
        let used = keysIn(device)
        for key in keys + made where !used.contains(key) && !unused.contains(key) { unused.append(key) }
        if !unused.isEmpty { act(.wipe(keys: unused)) }
    }

    /// Notes it for the next start, once in a step; `always` also where nothing has changed.
    func keep(_ kept: Kept, always: Bool = false) {
        if kept == device.kept && !always { return }
        device.kept = kept
        let noted = acts.firstIndex {
            if case .keep = $0 { true } else { false }
        }
        if let noted { acts[noted] = .keep(kept) } else { act(.keep(kept)) }
    }

    func settle(_ command: Int?, _ error: CallsignError? = nil, callId: String? = nil) {
        if let command { act(.settle(command: command, callId: callId, error: error)) }
    }

    func settleAll(_ commands: [Int], _ error: CallsignError? = nil, callId: String? = nil) {
        for command in commands { settle(command, error, callId: callId) }
    }

    func request(
        _ method: String, _ path: String, _ purpose: CallPurpose, body: [String: JSONValue]? = nil, nonce: Int? = nil
    ) {
        act(.request(CallAct.Request(act: wait(purpose), method: method, path: path, body: body, nonce: nonce)))
    }

    func open(
        _ text: String, _ from: [Sender], _ use: Use, _ hints: SetHints, _ purpose: CallPurpose, nonce: Int? = nil
    ) {
        let number = wait(purpose)
        let key = self.number()
        act(.open(CallAct.Open(act: number, key: key, text: text, from: from, use: use, hints: hints, nonce: nonce)))
    }

    func seal(_ key: Int, _ receivers: Receivers, _ use: Use, _ purpose: CallPurpose, nonce: String? = nil) {
        act(.seal(CallAct.Seal(act: wait(purpose), key: key, receivers: receivers, use: use, nonce: nonce)))
    }

    func makeKey() -> Int {
        let key = number()
        made.append(key)
        act(.make(key: key))
        return key
    }

    func wait(_ purpose: CallPurpose) -> Int {
        let act = number()
        device.waiting.append(CallWaiting(act: act, purpose: purpose))
        return act
    }

    func number() -> Int {
        device.count += 1
        return device.count
    }

    /// What a step before this one has made. Throws `ANSWER_INVALID` where it has not, as for nonsense of the server.
    func known<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw answerInvalid() }
        return value
    }
}
