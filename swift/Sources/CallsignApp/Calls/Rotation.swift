// The keys that this device makes in one call: when their time has run out, after a participant has left, and when asked.

import CallsignVerify

extension Turn {
    /// The time of the present key begins.
    func plan(_ callId: String, _ record: CallRecord) { planAfter(callId, periodMsOf(record), .rotation) }

    /// A little later, for several who leave at once.
    func planAfterLeaving(_ callId: String) { planSooner(callId, afterLeavingMs, .leave) }

    /// Makes a key for all now: for the app that asks, or to return with it into a call whose key is gone.
    func renew(_ callId: String, command: Int? = nil, returning: CallRecord? = nil) {
        guard let call = call(callId) else { return }
        let commands = [command].compactMap { $0 }
        guard var renewing = call.rotation.renewing else {
            return startRenewing(callId, .init(reason: .rotation, afterMs: nil, commands: commands, returning: returning))
        }
        renewing.commands += commands
        if let returning { renewing.returning = returning }
        change(callId) { $0.rotation = .renewing(renewing) }
    }

    /// Soon, since members may have one that this device does not know.
    func planAgain(_ callId: String) { planSooner(callId, afterLeavingMs, .rotation) }

    /// One who was removed has no key of what follows: the next one is made at once.
    func renewWithout(_ callId: String) {
        guard let call = call(callId), call.phase == .active, hasOthers(call) else { return }
        if call.rotation.renewing != nil { return planAfter(callId, 0, .leave) }
        startRenewing(callId, .init(reason: .leave, afterMs: 0, commands: []))
    }

    /// Once no invitation rings, the key is for those in the call alone, and for all of them. The host checks that after each
    /// change of people.
    func fit(_ callId: String) {
        guard let call = call(callId), let record = call.record, let held = call.newestKey else { return }
        guard call.phase == .active, record.hostUserId == device.userId else { return }
        guard call.rotation.renewing == nil, hasOthers(call) else { return }
        let joined = record.participants.filter { $0.state == .joined }.map(\.deviceName)
        if joined.contains(where: { !held.isFor($0) && !call.without.contains($0) }) { return planSooner(callId, 0, .rotation) }
        let rings = record.participants.contains { $0.state == .invited || $0.state == .ringing }
        if !rings && held.set.members.contains(where: { !joined.contains($0) }) { planAfterLeaving(callId) }
    }

    /// Sends the present key once more.
    func resend(_ callId: String, _ command: Int) {
        readForKeys(NewKey(callId: callId, reason: .emergency, command: command, triesLeft: tries))
    }

    /// Only the host makes it. Where it can't be made now, it is later.
    func onRotationDue(_ callId: String) {
        guard let call = call(callId), let planned = call.rotation.planned else { return }
        if call.record?.hostUserId == device.userId && call.phase == .active && hasOthers(call) {
            startRenewing(callId, .init(reason: planned.reason, afterMs: planned.afterMs, commands: []))
        } else {
            planAfter(callId, later(planned.afterMs), planned.reason)
        }
    }

    /// The call was read: its devices and its epoch.
    func onKeysRead(_ sending: NewKey, _ record: CallRecord) {
        let callId = sending.callId
        guard let call = call(callId) else { return settle(sending.command, hasEndedHere()) }
        let participants = receiversIn(callId, record)
        var sealing = sending
        sealing.record = record
        if sending.reason == .emergency {
            guard let held = call.newestKey else { return settle(sending.command, keyMissing()) }
            sealing.key = held.key
            sealing.epoch = held.epoch
            sealing.set = held.set
            let members = Receivers.members(participants, keyMembers: held.set.keyMembers)
            return seal(held.key, members, Use(callId: callId, epoch: held.epoch), .keysSeal(sealing))
        }
        if let ignored = record.participants.first(where: { $0.state == .joined && call.removed.contains($0.userId) }) {
            report(callId, removalIgnored(ignored.userId))
            // The server may not have heard of it.
            requestRemoval(.init(callId: callId, command: nil, userId: ignored.userId, isKnown: true))
        }
        let key = makeKey()
        let epoch = record.keyEpoch + 1
        sealing.key = key
        sealing.epoch = epoch
        seal(key, .participants(participants), Use(callId: callId, epoch: epoch), .keysSeal(sealing))
    }

    /// `unproved` are devices in the call that it could not be sealed for.
    func onKeysSealed(_ sending: NewKey, _ texts: [String: JSONValue], _ set: KeySet, _ unproved: [String]) {
        let callId = sending.callId
        guard call(callId) != nil, let record = sending.record, let epoch = sending.epoch else {
            return settle(sending.command, hasEndedHere())
        }
        var sealed = sending
        sealed.set = set
        sealed.without = sending.reason == .emergency ? [] : withoutIn(record, receiversIn(callId, record), unproved)
        var body: [String: JSONValue] = [
            "epoch": JSONValue(epoch),
            "reason": .string(sending.reason.rawValue),
            "keyMembers": .string(set.keyMembers),
            "encryptedAESKeys": .object(texts),
        ]
        if !sealed.without.isEmpty { body["without"] = .array(sealed.without.map(JSONValue.string)) }
        request("POST", "call/\(callId)/keys", .keys(sealed), body: body)
    }

    /// Gives the record with which this device returns into the call by the key, if it does: also where it still asks for one.
    func onKeysSent(_ sending: NewKey) -> CallRecord? {
        let callId = sending.callId
        let call = call(callId)
        guard sending.reason != .emergency, let record = sending.record, let epoch = sending.epoch, let key = sending.key,
            let set = sending.set
        else {
            settle(sending.command)
            return nil
        }
        for name in sending.without where call?.without.contains(name) != true {
            if userIdIn(name).map({ call?.removed.contains($0) == true }) != true { report(callId, leftOut(name)) }
        }
        change(callId) {
            $0.without = sending.without
            $0.admitted = []
        }
        // The app may have been closed and opened meanwhile: the others have it all the same.
        hold(callId, HeldKey(epoch: epoch, key: key, fromUserId: device.userId, set: set), reason: sending.reason)
        guard let call, let renewing = call.rotation.renewing else { return nil }
        change(callId) { $0.rotation = .idle }
        if let next = renewing.next { planAfter(callId, next.afterMs, next.reason) } else { plan(callId, record) }
        settleAll(renewing.commands)
        return renewing.returning ?? (call.isAsking ? record : nil)
    }

    /// Gives whether this device was to return into the call by the key.
    func onKeysNotSent(_ sending: NewKey, _ failure: CallsignError) -> Bool {
        let callId = sending.callId
        let call = call(callId)
        if let ignored = call?.removed.first(where: failure.namesDeviceOf) { report(callId, removalIgnored(ignored)) }
        // The server may have forgotten what they have asked: they ask again.
        if failure.hasCode("DEVICE_LIST_MISMATCH") { change(callId) { $0.admitted = [] } }
        if call != nil && failure.isChanged && sending.triesLeft > 1 {
            let triesLeft = sending.triesLeft - 1
            readForKeys(NewKey(callId: callId, reason: sending.reason, command: sending.command, triesLeft: triesLeft))
            return false
        }
        if sending.reason == .emergency {
            settle(sending.command, failure)
            return false
        }
        guard let call, let renewing = call.rotation.renewing else { return false }
        change(callId) { $0.rotation = .idle }
        if let afterMs = renewing.afterMs {
            planAfter(callId, later(afterMs), renewing.reason)
        } else {
            // It may have arrived; then this device needs another one with them.
            planAgain(callId)
        }
        settleAll(renewing.commands, failure)
        if renewing.afterMs != nil { report(callId, failure) }
        return renewing.returning != nil
    }

    private func startRenewing(_ callId: String, _ renewing: Rotation.Renewing) {
        change(callId) { $0.rotation = .renewing(renewing) }
        readForKeys(NewKey(callId: callId, reason: renewing.reason, command: nil, triesLeft: tries))
    }

    private func readForKeys(_ sending: NewKey) { request("GET", "call/\(sending.callId)", .keysRead(sending)) }

    private func planAfter(_ callId: String, _ afterMs: Int, _ reason: KeysReason) {
        change(callId) {
            if var renewing = $0.rotation.renewing {
                renewing.next = Planning(afterMs: afterMs, reason: reason)
                $0.rotation = .renewing(renewing)
            } else {
                $0.rotation = .planned(.init(atMs: nowMs + afterMs, afterMs: afterMs, reason: reason))
            }
        }
    }

    /// Unless one is planned that is to be earlier: it is for this too.
    private func planSooner(_ callId: String, _ afterMs: Int, _ reason: KeysReason) {
        guard var planned = call(callId)?.rotation.planned, planned.atMs <= nowMs + afterMs else {
            return planAfter(callId, afterMs, reason)
        }
        planned.reason = reason
        if reason == .leave { change(callId) { $0.rotation = .planned(planned) } }
    }

    private func hasOthers(_ call: DeviceCall) -> Bool {
        call.record?.participants.contains { $0.state == .joined && $0.userId != device.userId } == true
    }
}

extension CallsignError {
    /// Whether it says that a device of theirs was to have the key.
    fileprivate func namesDeviceOf(_ userId: UInt64) -> Bool {
        members["missing"]?.array?.contains { $0.string.flatMap(userIdIn) == userId } == true
    }
}

private func leftOut(_ name: String) -> CallsignError {
    let sentence = "A device in the call did not get the key, since the key log does not prove it."
    return CallsignError(CallsignError.LocalCode.keyLeftOut, sentence, members: ["name": .string(name)])
}

private func later(_ afterMs: Int) -> Int { min(max(2 * afterMs, afterLeavingMs), againMs) }

func keyMissing() -> CallsignError {
    CallsignError(CallsignError.LocalCode.keyMissing, "This device does not have the call’s key yet.")
}

private let afterLeavingMs = 5_000
private let againMs = 60_000
