import CallsignVerify

// Commands of the app for a call that is there.

extension Turn {
    func onCommand(_ command: Int, _ callId: String, _ asked: CallCommand) {
        guard let call = call(callId) else {
            // A call that is not there can be joined.
            if case .join = asked { return join(callId, command) }
            return settle(command, hasEndedHere())
        }
        switch asked {
        case .join: join(callId, command)
        case .answer(let evenIfOld): answer(callId, command, evenIfOld: evenIfOld)
        case .acceptDevice(let name):
            acceptDevice(name)
            settle(command)
        case .decline(let reason): decline(callId, reason, command)
        case .end: request("POST", "call/\(callId)/end", .end(callId: callId, command: command))
        case .leave:
            sendLeave(callId, command)
            close(callId, .left)
        case .remove(let userId): remove(call, userId, command)
        case .sendInvite(let userIds):
            setRemoved(callId, call.removed.filter { !userIds.contains($0) })
            invite(Invite(callId: callId, command: command, userIds: userIds, triesLeft: tries))
        case .renew: renew(callId, command: command)
        case .resend: resend(callId, command)
        case .useKey(let epoch):
            use(callId, epoch)
            settle(command)
        case .askForKey(let userId): askBeside(callId, command, userId)
        case .grant(let ask): grant(callId, ask, command)
        }
    }

    private func remove(_ call: DeviceCall, _ userId: UInt64, _ command: Int) {
        let isKnown = call.removed.contains(userId)
        // The server refuses it to all but the host.
        let isHost = call.record?.hostUserId == device.userId
        if isHost && !isKnown { setRemoved(call.callId, call.removed + [userId]) }
        requestRemoval(CallPurpose.Removal(callId: call.callId, command: command, userId: userId, isKnown: isKnown))
    }

    func requestRemoval(_ removal: CallPurpose.Removal) {
        request("POST", "call/\(removal.callId)/remove", .remove(removal), body: ["userId": .string("\(removal.userId)")])
    }

    func onLeft(_ callId: String) {
        var kept = device.kept
        kept.leaving.removeAll { $0 == callId }
        keep(kept)
    }

    /// While the connection lasts; else the next one does it.
    func leaveAgain(_ callId: String) {
        if device.connection != nil && device.kept.leaving.contains(callId) { sendLeave(callId) }
    }

    /// The app hears of it. Where the server has carried it out all the same, the record says so.
    func onNotRemoved(_ callId: String, _ userId: UInt64) {
        guard let call = call(callId) else { return forgetRemoved(callId, userId) }
        setRemoved(callId, call.removed.filter { $0 != userId })
    }

    /// Also after a restart, before there is another key.
    private func setRemoved(_ callId: String, _ removed: [UInt64]) {
        guard let call = call(callId), removed.count != call.removed.count else { return }
        change(callId) { $0.removed = removed }
        if let key = call.newestKey { noteOpened(callId, key.epoch) }
    }

    /// Those who come have the key of a new epoch, as all in the call: it opens nothing of before.
    func invite(_ asked: Invite) {
        if call(asked.callId)?.newestKey == nil { return settle(asked.command, keyMissing()) }
        var reading = asked
        reading.key = nil
        request("GET", "call/\(asked.callId)", .inviteRead(reading))
    }

    func onInviteRead(_ asked: Invite, _ record: CallRecord) {
        let callId = asked.callId
        if call(callId) == nil { return settle(asked.command, hasEndedHere()) }
        let key = makeKey()
        let epoch = record.keyEpoch + 1
        var sealing = asked
        sealing.key = key
        sealing.epoch = epoch
        let receivers = Receivers.participants(receiversIn(callId, record), userIds: asked.userIds)
        seal(key, receivers, Use(callId: callId, epoch: epoch), .inviteSeal(sealing))
    }

    func onInviteSealed(_ asked: Invite, _ texts: [String: JSONValue], _ set: KeySet) throws {
        let body: [String: JSONValue] = [
            "calleeIds": idsOf(asked.userIds),
            "epoch": JSONValue(try known(asked.epoch)),
            "keyMembers": .string(set.keyMembers),
            "encryptedAESKeys": .object(texts),
        ]
        var sending = asked
        sending.set = set
        request("POST", "call/\(asked.callId)/invite", .sendInvite(sending), body: body)
    }

    /// The members may have the new key. This device can't know: it makes another one, or asks for theirs.
    func onUnheard(_ callId: String) {
        if call(callId)?.record?.hostUserId == device.userId { planAgain(callId) } else { askBeside(callId, nil, nil) }
    }

    func onInvited(_ asked: Invite, _ record: CallRecord) throws {
        let (epoch, key, set) = (try known(asked.epoch), try known(asked.key), try known(asked.set))
        hold(asked.callId, HeldKey(epoch: epoch, key: key, fromUserId: device.userId, set: set))
        showIfNewer(asked.callId, record)
        settle(asked.command)
    }
}
