// A call that rings here: its invitation, the key that came with it, and its end without an answer.

import CallsignVerify

extension Turn {
    func ringingOf(_ invitation: Invitation) -> Ringing {
        Ringing(
            callId: invitation.callId,
            isVideo: invitation.isVideo,
            isOnGoing: invitation.isOnGoing,
            caller: invitation.caller,
            text: invitation.encryptedAESKey,
            epoch: invitation.keyEpoch,
            from: invitation.keyFrom,
            invitedAtMs: invitation.sentAtMs,
            untilMs: nowMs + ringsForMs(invitation)
        )
    }

    /// From an item of `call/pending`; nil where it does not ring for this device.
    func ringingIn(_ record: CallRecord) -> Ringing? {
        guard let own = record.participant(device.userId), let text = record.encryptedAESKey else { return nil }
        return Ringing(
            callId: record.callId,
            isVideo: record.isVideo,
            isOnGoing: record.isOnGoing,
            caller: record.caller ?? record.person(own.invitedBy),
            text: text,
            epoch: record.keyEpoch,
            from: record.keyFrom,
            invitedAtMs: own.invitedAtMs,
            untilMs: nowMs + record.ringTimeoutMs
        )
    }

    /// Rings, unless it is known, has ended here, or has rung out.
    func ring(_ ringing: Ringing) {
        let callId = ringing.callId
        if call(callId) != nil || ringing.untilMs <= nowMs || hasEnded(callId, invitedAtMs: ringing.invitedAtMs) { return }
        let invited = Invited(epoch: ringing.epoch, text: ringing.text, from: ringing.from)
        add(ringing, .ringingIn(Rings(invited: invited, untilMs: ringing.untilMs)))
        emit(callId, .ringing)
        openInvitation(callId, invited.named)
        tellRinging(callId)
    }

    /// The caller's screen can say so; that it rings does not hang on it.
    func tellRinging(_ callId: String) {
        if call(callId)?.phase.rings != nil { act(.send(destination: "/app/call/\(callId)/ringing", body: [:])) }
    }

    func onRingDue(_ callId: String) { decline(callId, .timeout, nil) }

    func decline(_ callId: String, _ reason: DeclineReason, _ command: Int?) {
        guard let rings = call(callId)?.phase.rings else { return settle(command, notRinging()) }
        if rings.mayBeIn { sendLeave(callId, command) }
        close(callId, reason == .timeout ? .missed : .declined, isOver: false)
        if rings.mayBeIn { return }
        let body: [String: JSONValue] = ["reason": .string(reason.rawValue)]
        request("POST", "call/\(callId)/decline", .command(callId: callId, command: command), body: body)
    }

    /// Another device of the user has answered, or none has. Where this one asks to join, the answer says whether the call is
    /// here.
    func onRungOut(_ callId: String, _ reason: CallEnding) {
        guard let call = call(callId) else { return }
        switch call.phase {
        case .ringingIn(let rings):
            if rings.mayBeIn { sendLeave(callId) }
            close(callId, reason)
        case .entering(var entering):
            // The answer has failed already where the end is waited for.
            let isAsked = entering.step == .joining || entering.step == .opening
            if !isAsked || call.end != .open { return close(callId, reason) }
            entering.rungOut = reason
            change(callId) { $0.phase = .entering(entering) }
        default: return
        }
    }

    /// It still rings: the invitation's key is not good any more. The new one has to come from a device that has the old one.
    func onRenewedKey(_ callId: String, _ event: [String: JSONValue], _ rings: Rings) throws {
        let text = try event.needText("encryptedAESKey")
        let epoch = try event.needNumber("epoch")
        let before = rings.invited
        // Any member can send the present key again, or what they say is it.
        if epoch < before.epoch || (epoch == before.epoch && before.state != .refused) { return }
        var renewed = rings
        renewed.invited = Invited(
            epoch: epoch,
            text: text,
            from: try sealerOf(event),
            after: before.key ?? before.after,
            change: try changeIn(event)
        )
        change(callId) { $0.phase = .ringingIn(renewed) }
        openInvitation(callId, renewed.invited.named)
    }

    /// The record says whom the call has, and for which devices its keys are.
    func openInvitation(_ callId: String, _ key: InvitedKey) {
        request("GET", "call/\(callId)", .invitedRead(callId: callId, key: key))
    }

    /// Gives why the key is not taken, unless it may be.
    func onInvitedRead(_ record: CallRecord, _ key: InvitedKey) -> CallsignError? {
        let callId = record.callId
        guard let call = call(callId), let invited = call.invited, invited.named == key else { return nil }
        let (epoch, from, after) = (invited.epoch, invited.from, invited.after)
        if let refusal = refusalOfEpoch(callId, epoch) { return refusal }
        let callerId = call.caller.userId
        let senders = (from.map { [$0] } ?? sendersIn(record, callerId))
            .filter { after?.isForSomeDeviceOf($0.userId) ?? ($0.userId == callerId) }
        if senders.isEmpty {
            if let from, after != nil { return notFromMember(from) }
            return callerNotSealer()
        }
        let hints = SetHints(sets: setsIn(call, record), change: invited.change)
        let use = Use(callId: callId, epoch: epoch)
        open(key.text, senders, use, hints, .invitedOpen(callId: callId, key: key, record: record))
        return nil
    }

    /// Notes the outcome for the invitation's key; false where another key counts by now.
    func onInvitedOpened(_ callId: String, _ named: InvitedKey, _ key: HeldKey) -> Bool {
        guard var invited = openingOf(callId, named) else { return false }
        var key = key
        key.epoch = invited.epoch
        invited.state = .opened
        invited.key = key
        setInvited(callId, invited)
        change(callId) { $0.isVerified = true }
        return true
    }

    func onInvitedRefused(_ callId: String, _ key: InvitedKey, _ failure: CallsignError) -> Bool {
        guard var invited = openingOf(callId, key) else { return false }
        invited.state = .refused
        setInvited(callId, invited)
        if !failure.hasCode("CALL_ENDED") { change(callId) { $0.isVerified = false } }
        report(callId, failure)
        return true
    }

    func setInvited(_ callId: String, _ invited: Invited) {
        switch call(callId)?.phase {
        case .ringingIn(var rings):
            rings.invited = invited
            change(callId) { $0.phase = .ringingIn(rings) }
        case .entering(var entering):
            entering.from?.invited = invited
            change(callId) { $0.phase = .entering(entering) }
        default: return
        }
    }

    /// A call that was not there.
    func add(_ ringing: Ringing, _ phase: CallPhase) {
        let call = DeviceCall(
            callId: ringing.callId,
            isVideo: ringing.isVideo,
            isOnGoing: ringing.isOnGoing,
            isIncoming: ringing.caller.userId != device.userId,
            caller: ringing.caller,
            invitedAtMs: ringing.invitedAtMs,
            phase: phase,
            record: nil
        )
        add(call)
    }

    func add(_ record: CallRecord, _ caller: Person, _ phase: CallPhase) { add(record, caller, phase, shown: record) }

    func add(_ record: CallRecord, _ caller: Person, _ phase: CallPhase, shown: CallRecord?) {
        let call = DeviceCall(
            callId: record.callId,
            isVideo: record.isVideo,
            isOnGoing: record.isOnGoing,
            isIncoming: caller.userId != device.userId,
            caller: caller,
            invitedAtMs: 0,
            phase: phase,
            record: shown
        )
        add(call)
    }

    private func add(_ call: DeviceCall) {
        var call = call
        // Also where it was left, and is come back to.
        call.removed = device.kept.opened.first { $0.callId == call.callId }?.removed ?? []
        device.calls.append(call)
    }

    /// Devices in the call that may have sealed its key, the likeliest first.
    func sendersIn(_ record: CallRecord, _ callerId: UInt64? = nil) -> [Sender] {
        let others: [Sender] = record.participants.compactMap { one in
            guard one.userId != device.userId, let deviceId = one.deviceId else { return nil }
            return Sender(userId: one.userId, deviceId: deviceId)
        }
        func isLikely(_ one: Sender) -> Bool { one.userId == callerId || one.userId == record.hostUserId }
        return others.filter(isLikely) + others.filter { !isLikely($0) }
    }

    /// How much longer an invitation rings, by the server's clock; as long as it was meant to while that is not known.
    private func ringsForMs(_ invitation: Invitation) -> Int {
        let ringMs = invitation.expiresAtMs - invitation.sentAtMs
        return device.clock.isKnown ? min(ringMs, invitation.expiresAtMs - serverMs) : ringMs
    }

    private func openingOf(_ callId: String, _ key: InvitedKey) -> Invited? {
        guard let invited = call(callId)?.invited, invited.state == .opening, invited.named == key else { return nil }
        return invited
    }
}

func notRinging() -> CallsignError { CallsignError("CALL_NOT_ACTIVE", "The call does not ring here.") }
