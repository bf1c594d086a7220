// The keys of a call by epoch: which one frames are sealed with, and how long older ones open frames.

extension Turn {
    /// Keeps a key. A device that has just come back, or had none, sends with it at once, as all in the call do; so does every
    /// device after a person has left. Another key of an epoch that is held is taken from the host alone, in place of a
    /// provisional one.
    func hold(_ callId: String, _ key: HeldKey, wasAway: Bool = false, reason: KeysReason? = nil) {
        guard let call = call(callId) else { return }
        // Also one of this device's own, which was on its way when they were removed.
        if let refusal = refusalOfSet(callId, key, nil) { return report(callId, refusal) }
        let same = call.key.held.first { $0.epoch == key.epoch }
        let isOther = same != nil && same?.key != key.key
        if let same, isOther, !same.isProvisional || key.isProvisional { return report(callId, keyChanged()) }
        let others = call.key.held.filter { $0.epoch != key.epoch }
        let held = Array(([key] + others).sorted { $0.epoch > $1.epoch }.prefix(keptMax))
        change(callId) {
            $0.key = KeyState(isAsked: false, held: held)
            // The host may answer the ask yet.
            $0.nonce = key.isProvisional ? call.nonce : nil
            $0.offer = nil
        }
        let newest = held[0]
        let before = call.newestKey
        if newest.key != before?.key || newest.epoch != before?.epoch {
            change(callId) {
                $0.unopened = []
                $0.heldAtMs = nowMs
            }
            emit(callId, .key(newest))
            noteOpened(callId, newest.epoch)
        }
        let sending = call.sending
        if isOther && sending.epoch == key.epoch { emit(callId, .sending(key)) }
        let isUrgent = reason == .leave && key.epoch > sending.epoch
        if sending.epoch == 0 || wasAway || call.isAsking || isUrgent { return use(callId, key.epoch, reason) }
        let due = Due(epoch: key.epoch, atMs: nowMs + spreadMs)
        if key.epoch > sending.epoch {
            change(callId) { $0.sending.uses = sending.uses.with(due) }
        } else if key.epoch < sending.epoch {
            change(callId) { $0.sending.drops = sending.drops.with(due) }
        }
    }

    /// All have it by now. Frames of the ones before may still be on their way: after a rotation by time they are opened for
    /// longer.
    func use(_ callId: String, _ epoch: Int, _ reason: KeysReason? = nil) {
        guard let call = call(callId), let held = call.key.held.first(where: { $0.epoch == epoch }) else { return }
        let sending = call.sending
        // A newer one may have been used at once, after a return to the call.
        if epoch <= sending.epoch { return }
        let atMs = nowMs + (reason == .leave ? spreadMs : keptMs)
        let older = call.key.held.filter { $0.epoch < epoch }
        let drops = older.reduce(sending.drops) { all, one in all.with(Due(epoch: one.epoch, atMs: atMs)) }
        let uses = sending.uses.filter { $0.epoch > epoch }
        change(callId) { $0.sending = Sending(epoch: epoch, uses: uses, drops: drops) }
        emit(callId, .sending(held))
    }

    /// Its frames can't be opened any more.
    func drop(_ callId: String, _ epoch: Int) {
        change(callId) {
            $0.key.held.removeAll { $0.epoch == epoch }
            $0.sending.drops.removeAll { $0.epoch == epoch }
        }
    }

    /// Whether this key, or a newer one, was in use for as long as one may be: it does not come back.
    func isOutdated(_ call: DeviceCall, _ epoch: Int) -> Bool {
        epoch <= (call.newestKey?.epoch ?? 0) && nowMs >= call.outdatedAtMs
    }
}

extension DeviceCall {
    /// The newest key seals frames until then, even if a server withholds newer ones.
    var outdatedAtMs: Int { heldAtMs + periodMsOf(record) + keptMs }
}

/// The time of a key. No server has keys made all the time, or none.
func periodMsOf(_ record: CallRecord?) -> Int { min(max(record?.keyRotationMs ?? periodMaxMs, periodMinMs), periodMaxMs) }

extension [Due] {
    /// A key of the same epoch that comes once more puts nothing off.
    fileprivate func with(_ due: Due) -> [Due] { contains { $0.epoch == due.epoch } ? self : self + [due] }
}

private func keyChanged() -> CallsignError {
    let sentence = "Another key was sent for an epoch of the call whose key is here already."
    return CallsignError(CallsignError.LocalCode.callKeyChanged, sentence)
}

/// More than the two that a call has unless keys are made faster than they are used.
private let keptMax = 4

/// From a key's arrival to its use, and after a person has left to the end of the one before.
private let spreadMs = 5_000

/// From a key's use to the end of the one before, which frames on their way may still need.
private let keptMs = 60_000

/// The host makes a key as often, and no server makes it less.
private let periodMaxMs = 600_000
private let periodMinMs = 60_000
