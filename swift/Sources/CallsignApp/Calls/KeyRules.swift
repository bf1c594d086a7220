// Which keys a device takes: from whom, and for which devices (docs/check/crypto.md).

import CallsignVerify

extension DeviceCall {
    /// The newest key of the call that was opened here, also one that an invitation brought.
    var latestKey: HeldKey? { newestKey ?? invited?.key }
}

extension HeldKey {
    /// The next epoch comes from a person who has the one before: on another device of theirs, where they have moved the call.
    func isForSomeDeviceOf(_ userId: UInt64) -> Bool { set.members.contains { userIdIn($0) == userId } }

    /// Whether the key is for this device.
    func isFor(_ deviceName: String) -> Bool { set.members.contains(deviceName) }
}

/// The person in a device's name; nil for what is no name of a device.
func userIdIn(_ deviceName: String) -> UInt64? {
    let id = deviceName.utf8.prefix { $0 != UInt8(ascii: "_") }
    return uint64(String(decoding: id, as: UTF8.self))
}

/// Sets that may be the one: those in the record, and of the keys that are here.
func setsIn(_ call: DeviceCall?, _ record: CallRecord?) -> [String] {
    let held = (call?.key.held ?? []) + [call?.invited?.key].compactMap { $0 }
    var known: Set<[UInt8]> = []
    return ((record?.keySets ?? []) + held.map(\.set.keyMembers)).filter { known.insert(Array($0.utf8)).inserted }
}

/// How the set of a `key_update` differs from the one before, if it says so.
func changeIn(_ event: [String: JSONValue]) throws -> SetChange? {
    guard let added = event.text("added"), let removed = try event.textsOrNil("removed") else { return nil }
    return SetChange(added: added, removed: removed)
}

extension Turn {
    /// Why a key is not taken for the devices that it is sealed for. Without a record it is not known who has a part in the
    /// call.
    func refusalOfSet(_ callId: String, _ key: HeldKey, _ record: CallRecord?) -> CallsignError? {
        if let name = key.unlisted.first(where: { !device.kept.accepted.contains($0) }) { return ownDeviceInSet(name) }
        let removed = call(callId)?.removed ?? []
        let userIds = key.set.members.compactMap(userIdIn)
        if let userId = userIds.first(where: removed.contains) { return removalIgnored(userId) }
        guard let record else { return nil }
        // People who have left since, or declined, were in the call when the key was made.
        let stranger = userIds.first { id in
            let state = record.participant(id)?.state
            return state == nil || state == .removed
        }
        guard let stranger else { return nil }
        let sentence = "The call’s key is not taken: it is sealed for a person who is not in the call."
        return CallsignError(CallsignError.LocalCode.keyMembersRefused, sentence, members: ["userId": .string("\(stranger)")])
    }

    /// The user says that it is theirs.
    func acceptDevice(_ name: String) {
        var kept = device.kept
        guard !kept.accepted.contains(name) else { return }
        kept.accepted = (kept.accepted + [name]).suffix(acceptedMax)
        keep(kept)
    }

    /// Why a key of this epoch is not taken: what the call had before does not come again.
    func refusalOfEpoch(_ callId: String, _ epoch: Int) -> CallsignError? {
        guard let before = device.kept.opened.first(where: { $0.callId == callId }) else { return nil }
        // Keys that come out of their order are taken, but none from before those that are here.
        let oldest = call(callId)?.key.held.last?.epoch
        let isOld = before.isOver ? epoch <= before.epoch : epoch < (oldest ?? before.epoch)
        guard isOld else { return nil }
        let sentence = "The call’s key is not taken: it is of an epoch that this device has left behind."
        return CallsignError(CallsignError.LocalCode.callKeyOld, sentence, members: ["epoch": JSONValue(epoch)])
    }

    /// A server may hand out once more what it has kept.
    func refusalOfAge(_ callId: String, _ sealedAgoMs: Int) -> CallsignError? {
        guard sealedAgoMs > oldMs else { return nil }
        if call(callId)?.phase.entering?.evenIfOld == true { return nil }
        let sentence = "The invitation was sealed \(sealedAgoMs / 60_000) minutes ago: take it only if you expect it."
        let members = ["sealedAgoMs": JSONValue(sealedAgoMs)]
        return CallsignError(CallsignError.LocalCode.invitationOld, sentence, members: members)
    }

    /// Notes the newest epoch of a call, for as long as this device is the user's.
    func noteOpened(_ callId: String, _ epoch: Int, isOver: Bool = false) {
        var kept = device.kept
        let before = kept.opened.first { $0.callId == callId }
        let removed = isOver ? [] : call(callId)?.removed ?? before?.removed ?? []
        let noted = OpenedCall(callId: callId, epoch: max(epoch, before?.epoch ?? 0), isOver: isOver, removed: removed)
        kept.opened = (kept.opened.filter { $0.callId != callId } + [noted]).suffix(openedMax)
        keep(kept, always: true)
    }

    /// The call was left meanwhile.
    func forgetRemoved(_ callId: String, _ userId: UInt64) {
        var kept = device.kept
        for index in kept.opened.indices where kept.opened[index].callId == callId {
            kept.opened[index].removed.removeAll { $0 == userId }
        }
        keep(kept, always: true)
    }

    /// Whether this device may make the next epoch. The host's may; if the host's device does not have the present key, the
    /// member with the lowest id may instead.
    func mayRenew(_ callId: String, _ record: CallRecord) -> Bool {
        let userId = device.userId
        if record.hostUserId == userId { return true }
        guard let held = call(callId)?.newestKey, held.isFor(device.deviceName) else { return false }
        let able = record.participants.filter { $0.state == .joined && held.isFor($0.deviceName) }.map(\.userId)
        return !able.contains(record.hostUserId) && able.min() == userId
    }

    /// The next key's receivers, without those whom this device has removed.
    func receiversIn(_ callId: String, _ record: CallRecord) -> [CallParticipant] {
        let call = call(callId)
        return record.participants.filter { call?.removed.contains($0.userId) != true }.flatMap { one in
            guard let admitted = call?.admitted.first(where: { $0.userId == one.userId }) else { return [one] }
            var joined = one
            joined.deviceId = admitted.deviceId
            joined.state = .joined
            return joined.deviceId == one.deviceId ? [joined] : [one, joined]
        }
    }
}

private func ownDeviceInSet(_ name: String) -> CallsignError {
    let sentence = "The call’s key is sealed for a device of your own that is on no device list: is it yours?"
    return CallsignError(CallsignError.LocalCode.ownDeviceInSet, sentence, members: ["name": .string(name)])
}

/// Why the call's key is not taken from the device that is said to have made it.
func notFromMember(_ from: Sender) -> CallsignError {
    let sentence = "The call’s key is not taken: it comes from a person who did not have the one before."
    return CallsignError(CallsignError.LocalCode.keyMembersRefused, sentence, members: ["name": .string(from.deviceName)])
}

func removalIgnored(_ userId: UInt64) -> CallsignError {
    let sentence = "The call’s key was to be sealed for a person whom this device has removed."
    return CallsignError(CallsignError.LocalCode.removalIgnored, sentence, members: ["userId": .string("\(userId)")])
}

func callerNotSealer() -> CallsignError {
    let sentence = "The call’s key does not come from the person who is said to call."
    return CallsignError(CallsignError.LocalCode.callerNotSealer, sentence)
}

/// Devices in the call that it is not for.
func withoutIn(_ record: CallRecord, _ receivers: [CallParticipant], _ without: [String]) -> [String] {
    record.participants
        .filter { $0.state == .joined }
        .filter { one in without.contains(one.deviceName) || !receivers.contains { $0.userId == one.userId } }
        .map(\.deviceName)
}

/// Some tens of octets each.
private let openedMax = 500
private let acceptedMax = 100

/// An invitation rings for a minute, and clocks differ.
private let oldMs = 300_000
