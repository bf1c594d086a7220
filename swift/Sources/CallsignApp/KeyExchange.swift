// How a call's key goes to other devices and comes from them: only to and from devices that the key log proves. With each key
// goes the set of devices that it is sealed for, and who opens it looks at all of them.
import CallsignVerify

/// A key sealed for a set of devices. `texts` are by `<userId>_<deviceId>`, none for this device. `members` are the names of the
/// devices in the set `keyMembers`, this one among them; `without` those of devices in the call that can't be proved now.
struct SealedKeys: Sendable {
    let texts: [String: JSONValue]
    let keyMembers: String
    let members: [String]
    let without: [String]
}

/// A key, the device that has sealed it, and the set of devices that it is sealed for. `unlisted` are names of the user's own
/// devices in the set, but this one, that no device list names. `sealedAtMs` is by the sender's clock.
struct OpenedKey: Sendable {
    let key: [UInt8]
    let from: Sender
    let keyMembers: String
    let members: [String]
    let unlisted: [String]
    let sealedAtMs: Int
}

/// Its functions throw as those of `KeyLog`.
@CallsignActor final class KeyExchange {
    private let keyLog: KeyLog
    private let session: Session
    private let nowMs: @Sendable () -> Int

    /// By call, the one used last at the end: the devices that the log has proved since this device is in it.
    private var proved: [(callId: String, devices: [String: PeerDevice])] = []

    init(_ keyLog: KeyLog, _ session: Session, nowMs: @escaping @Sendable () -> Int) {
        self.keyLog = keyLog
        self.session = session
        self.nowMs = nowMs
    }

    private var own: KeyHolder { keyLog.own.holder }

    /// For every device of these users.
    func sealForUsers(_ key: [UInt8], _ userIds: [UInt64], _ binding: KeyBinding) async throws -> SealedKeys {
        try await sealed(key, proveCallees(userIds, binding), binding)
    }

    /// For a call that goes on. Devices that were proved before are not asked for again, and one in the call that can't be proved
    /// is left out. Throws where a user of `userIds` can't be proved.
    func sealForCall(
        _ key: [UInt8], _ participants: [CallParticipant], _ userIds: [UInt64], _ binding: KeyBinding
    ) async throws -> SealedKeys {
        let invited = try await proveCallees(userIds, binding)
        let receivers = participants.filter {
            $0.userId != own.userId && !userIds.contains($0.userId) && [.joined, .invited, .ringing].contains($0.state)
        }
        func isOf(_ device: PeerDevice, _ receiver: CallParticipant) -> Bool {
            receiver.state == .joined ? device.holder.name == receiver.deviceName : device.userId == receiver.userId
        }
        func isMissing(_ receiver: CallParticipant) -> Bool { !known(binding).contains { isOf($0, receiver) } }
        await proveSoon(receivers.filter { isMissing($0) }.map(\.userId), binding)
        let present = known(binding).filter { device in receivers.contains { isOf(device, $0) } }
        let without = receivers.filter { $0.state == .joined && isMissing($0) }.map(\.deviceName)
        return try await sealed(key, invited + present, binding, without: without)
    }

    /// A key that this device holds once more, for the devices of its set that are in the call.
    func sealAgain(
        _ key: [UInt8], _ keyMembers: String, _ participants: [CallParticipant], _ binding: KeyBinding
    ) async throws -> SealedKeys {
        let members = try readKeyMembers(keyMembers)
        let joined = Set(participants.filter { $0.state == .joined }.map(\.deviceName))
        let devices = try await provedAs(members.filter { joined.contains($0.name) && $0.name != own.name }, binding)
        let texts = try await textsOf(key, devices, hashOfSet(keyMembers), binding)
        return SealedKeys(texts: texts, keyMembers: keyMembers, members: members.map(\.name), without: [])
    }

    /// A held key for one device. Throws `KEYS_REFUSED` where it has another key than the one of this hash.
    func sealForDevice(_ key: [UInt8], _ keyMembers: String, _ asker: KeyAsk, _ binding: KeyBinding) async throws -> String {
        let device = try await keyLog.deviceOf(asker.userId, asker.deviceId)
        if isSame(device.publicKeyHash, asker.publicKeyHash) {
            return try await seal(key, device, hashOfSet(keyMembers), binding)
        }
        let detail = "device \(asker.deviceId) asks for a call's key with another key than its own"
        throw try await keyLog.refuse(asker.userId, Refusal(.vrfHash, detail))
    }

    /// Opens a key that one of these has sealed, tried in this order. Throws `CALL_KEY_INVALID` when none of them has, and
    /// `KEY_MEMBERS_REFUSED` where the set does not hold that goes with it.
    func open(_ sealed: String, _ senders: [Sender], _ binding: KeyBinding, _ hints: SetHints) async throws -> OpenedKey {
        var refusal = CallsignError(CallsignError.LocalCode.callKeyInvalid, "Nobody in the call has sealed its key.")
        for sender in senders {
            let (from, content): (PeerDevice, CallKeyContent)
            do {
                (from, content) = try await openFrom(sender, sealed, binding)
            } catch let error as CallsignError {
                // A sender whose keys could not be read now may have sealed it.
                if refusal.code == CallsignError.LocalCode.callKeyInvalid { refusal = error }
                continue
            }
            let keyMembers = try await setWith(content.setHash, binding, hints)
            let members = try readKeyMembers(keyMembers)
            try await checkMembers(members, from, binding)
            let names = members.map(\.name)
            let unlisted = known(binding).filter { $0.userId == own.userId && !$0.isListed }.map(\.holder.name)
            return OpenedKey(
                key: content.callKey,
                from: sender,
                keyMembers: keyMembers,
                members: names,
                unlisted: unlisted.filter { names.contains($0) && $0 != own.name },
                sealedAtMs: content.sealedAtMs
            )
        }
        throw refusal
    }

    private func openFrom(
        _ sender: Sender, _ sealed: String, _ binding: KeyBinding
    ) async throws -> (PeerDevice, CallKeyContent) {
        let before = known(binding).first { $0.userId == sender.userId && $0.deviceId == sender.deviceId }
        let from = if let before { before } else { try await keyLog.deviceOf(sender.userId, sender.deviceId) }
        let opened = try await openCallKey(sealed, from: from.holder, to: keyLog.own, binding: binding)
        return (from, try await keyLog.unpacked(opened, userId: sender.userId))
    }

    /// The set with this hash.
    private func setWith(_ setHash: [UInt8], _ binding: KeyBinding, _ hints: SetHints) async throws -> String {
        func isIt(_ keyMembers: String) -> Bool { (try? hashOfSet(keyMembers)) == setHash }
        for set in hints.sets {
            let after = hints.change.flatMap { try? changedSet(set, $0) }
            if isIt(set) { return set }
            if let after, isIt(after) { return after }
        }
        let operation = "call/\(binding.callId)/key-members?epoch=\(binding.epoch)"
        let named = try await session.ask("GET", operation).needText("keyMembers")
        if isIt(named) { return named }
        throw membersRefused("the server names other devices than the key is sealed for")
    }

    /// Throws unless the log proves each device with this key, and sender and receiver are among them.
    private func checkMembers(_ members: [KeyMember], _ from: PeerDevice, _ binding: KeyBinding) async throws {
        for holder in [own, from.holder] where !members.contains(where: { $0.isOf(holder) }) {
            throw membersRefused("device \(holder.name) is not among those that it is sealed for", holder.name)
        }
        remember([from], binding)
        _ = try await provedAs(members.filter { $0.name != own.name }, binding)
    }

    /// The devices of a set, proved. Throws `KEY_MEMBERS_REFUSED` unless each has the key that the set has of it.
    private func provedAs(_ members: [KeyMember], _ binding: KeyBinding) async throws -> [PeerDevice] {
        func find(_ member: KeyMember) -> PeerDevice? { known(binding).first { member.isOf($0.holder) } }
        _ = try await prove(members.filter { find($0) == nil }.map(\.userId), binding)
        return try members.map { member in
            guard let device = find(member) else {
                throw membersRefused("device \(member.name) is not one that the log proves", member.name)
            }
            return device
        }
    }

    /// Keys are hidden from those alone whose calls the server refuses: such a user hears what the server would say.
    private func proveCallees(_ userIds: [UInt64], _ binding: KeyBinding) async throws -> [PeerDevice] {
        do {
            return try await prove(userIds, binding)
        } catch let error as CallsignError {
            guard let hidden = error.members["hiddenIds"] else { throw error }
            let sentence = "A callee is no contact and takes calls from contacts only: become contacts first."
            throw CallsignError("CALLEE_NOT_CONTACT", sentence, cause: error, members: ["calleeIds": hidden])
        }
    }

    private func prove(_ userIds: [UInt64], _ binding: KeyBinding) async throws -> [PeerDevice] {
        if userIds.isEmpty { return [] }
        var distinct: [UInt64] = []
        for userId in userIds where !distinct.contains(userId) { distinct.append(userId) }
        let others = try await keyLog.devicesOf(distinct).filter { $0.holder.name != own.name }
        remember(others, binding)
        return others
    }

    /// Each by itself, and no longer than a call can wait for its key.
    private func proveSoon(_ userIds: [UInt64], _ binding: KeyBinding) async {
        // What can't be proved is left out, and named.
        let all = Set(userIds).map { userId in Task { _ = try? await prove([userId], binding) } }
        let done = Deferred<Void>()
        Task {
            for each in all { await each.value }
            done.complete(())
        }
        let waiting = Task {
            try await Task.sleep(nanoseconds: Self.proveWaitNs)
            done.complete(())
        }
        _ = try? await done.value
        waiting.cancel()
    }

    private func sealed(
        _ key: [UInt8], _ devices: [PeerDevice], _ binding: KeyBinding, without: [String] = []
    ) async throws -> SealedKeys {
        let all = [own] + devices.map(\.holder)
        let keyMembers = try keyMembersOf(all)
        let texts = try await textsOf(key, devices, hashOfSet(keyMembers), binding)
        return SealedKeys(texts: texts, keyMembers: keyMembers, members: all.map(\.name), without: without)
    }

    private func textsOf(
        _ key: [UInt8], _ devices: [PeerDevice], _ setHash: [UInt8], _ binding: KeyBinding
    ) async throws -> [String: JSONValue] {
        var texts: [String: JSONValue] = [:]
        for device in devices { texts[device.holder.name] = .string(try await seal(key, device, setHash, binding)) }
        return texts
    }

    private func seal(_ key: [UInt8], _ to: PeerDevice, _ setHash: [UInt8], _ binding: KeyBinding) async throws -> String {
        let content = CallKeyContent(callKey: key, setHash: setHash, sealedAtMs: nowMs())
        return try await sealCallKey(keyLog.packed(content), from: keyLog.own, to: to.holder, binding: binding)
    }

    private func known(_ binding: KeyBinding) -> [PeerDevice] {
        proved.first { $0.callId == binding.callId }.map { Array($0.devices.values) } ?? []
    }

    private func remember(_ devices: [PeerDevice], _ binding: KeyBinding) {
        let before = proved.first { $0.callId == binding.callId }?.devices ?? [:]
        proved.removeAll { $0.callId == binding.callId }
        proved.append((binding.callId, before.merging(devices.map { ($0.holder.name, $0) }) { $1 }))
        if proved.count > Self.callsMax { proved.removeFirst() }
    }

    private static let proveWaitNs: UInt64 = 3_000_000_000

    /// A device is in one call, and a few more ring.
    private static let callsMax = 16
}

extension KeyMember {
    fileprivate func isOf(_ holder: KeyHolder) -> Bool { name == holder.name && keyHash == holder.keyHash }
}

private func membersRefused(_ detail: String, _ name: String? = nil) -> CallsignError {
    let sentence = "The call’s key is not taken: \(detail)."
    return CallsignError(CallsignError.LocalCode.keyMembersRefused, sentence, members: bodyOf(["name": name]))
}
