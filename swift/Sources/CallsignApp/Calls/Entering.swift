import CallsignVerify

// The way into a call: its key is opened, the call that this device is in is left for it, and the server is asked.

extension Turn {
    /// Answers a call that rings here.
    func answer(_ callId: String, _ command: Int, evenIfOld: Bool = false) {
        guard let rings = call(callId)?.phase.rings else { return settle(command, notRinging()) }
        var invited = rings.invited
        enterPhase(callId, .entering(Entering(from: rings, step: .key, commands: [command], evenIfOld: evenIfOld)))
        if invited.state != .refused { return onInvitedKey(callId) }
        // The log may not have been reachable when it began to ring.
        invited.state = .opening
        setInvited(callId, invited)
        openInvitation(callId, invited.named)
    }

    /// The invitation's key was opened, or not.
    func onInvitedKey(_ callId: String, _ failure: CallsignError? = nil) {
        guard let entering = call(callId)?.phase.entering, entering.step == .key else { return }
        if let failure { return fail(callId, failure) }
        if entering.from?.invited.state == .opened { clear(callId) }
    }

    /// Comes in without ringing: from another device of the user, or back.
    func join(_ callId: String, _ command: Int) {
        guard let call = call(callId) else {
            return request("GET", "call/\(callId)", .joinFind(callId: callId, command: command))
        }
        switch call.phase {
        case .ringingIn: answer(callId, command)
        case .entering(var entering):
            entering.commands.append(command)
            change(callId) { $0.phase = .entering(entering) }
        case .ringingOut, .active, .rejoining, .keyless, .ended: settle(command, callId: callId)
        }
    }

    func onFound(_ record: CallRecord, _ command: Int) {
        let callId = record.callId
        if call(callId) != nil { return join(callId, command) }
        let invitedBy = record.participant(device.userId)?.invitedBy ?? record.initiatorId
        let entering = Entering(from: nil, step: .clearing, commands: [command])
        add(record, record.person(invitedBy), .entering(entering), shown: nil)
        clear(callId)
    }

    /// Leaves the call that this device is in for it, then asks to join.
    func clear(_ callId: String) {
        setStep(callId, .clearing)
        giveUpEntering(callId)
        if let other = otherThan(callId) { return leaveFor(callId, other.callId, other) }
        setStep(callId, .joining)
        // The one of before the app was closed is still to be restored.
        if let before = device.kept.callId, before != callId, call(before) == nil { sendLeave(before) }
        // Without it, an app that ends before the answer would never know that it is in.
        var kept = device.kept
        kept.callId = callId
        keep(kept)
        request("POST", "call/\(callId)/join", .join(callId: callId))
    }

    func onCleared(_ callId: String, _ other: String, _ endReason: String?) {
        // Its start may be answered yet.
        if call(other) == nil { noteEnd(other, invitedAtMs: 0) }
        close(other, endReason.map(endingOf) ?? .left)
        if isClearing(callId) { clear(callId) }
    }

    func onNotCleared(_ callId: String, _ other: String, _ failure: CallsignError) {
        if failure.isGone { onCleared(callId, other, nil) } else if isClearing(callId) { fail(callId, failure) }
    }

    func onJoined(_ record: CallRecord) {
        let callId = record.callId
        // Else it would be shown as a participant.
        guard let call = call(callId) else { return leaveUnknown(callId) }
        guard let entering = call.phase.entering else { return }
        if record.version <= call.movedVersion { return close(callId, .moved) }
        guard let own = record.participant(device.userId), own.state == .joined else {
            // A call has begun meanwhile: the server would not let this device come back.
            if otherThan(callId) != nil { return clear(callId) }
            // It has to come back by a key, whatever it has: they had left, or declined with another device.
            return done(callId) { ask(record) }
        }
        let invited = entering.from?.invited.key
        let keys = call.key.held + (invited.map { [$0] } ?? [])
        if let key = keys.first(where: { $0.epoch == record.keyEpoch }) { return done(callId) { enter(record, key) } }
        guard let sealed = record.encryptedAESKey else { return done(callId) { ask(record) } }
        setStep(callId, .opening)
        let from = record.keyFrom
        let senders = (from.map { [$0] } ?? sendersIn(record))
            .filter { invited?.isForSomeDeviceOf($0.userId) ?? ($0.userId == own.invitedBy) }
        let stranger = senders.isEmpty ? from.map(notFromMember) ?? callerNotSealer() : nil
        if let refusal = refusalOfEpoch(callId, record.keyEpoch) ?? stranger { return onJoinedRefused(record, refusal) }
        open(
            sealed, senders, Use(callId: callId, epoch: record.keyEpoch), SetHints(sets: setsIn(call, record)),
            .joinedOpen(callId: callId, record: record))
    }

    func onNotJoined(_ callId: String, _ failure: CallsignError) {
        if call(callId) == nil {
            if failure.isUnheard { leaveUnknown(callId) }
            return
        }
        switch failure.code {
        // One that the app knows nothing of.
        case "ALREADY_IN_CALL": leaveFor(callId, failure.members.callId() ?? "", nil)
        case "REJOIN_REQUIRED": request("GET", "call/\(callId)", .join(callId: callId))
        default: fail(callId, failure)
        }
    }

    /// The key that the answer to `join` had.
    func onJoinedOpened(_ record: CallRecord, _ key: HeldKey) {
        if let refusal = refusalOfSet(record.callId, key, record) { return onJoinedRefused(record, refusal) }
        done(record.callId) { enter(record, key) }
    }

    /// Another device may give the key in a way that can be verified.
    func onJoinedRefused(_ record: CallRecord, _ failure: CallsignError) {
        report(record.callId, failure)
        done(record.callId) { ask(record) }
    }

    /// A key that came while this device was on its way in, or in.
    func onUpdate(_ callId: String, _ event: [String: JSONValue], _ command: Int) throws {
        let from = try sealerOf(event)
        let epoch = try event.needNumber("epoch")
        let call = call(callId)
        let latest = call?.latestKey
        let isEntering = call?.phase.entering != nil
        // Any member can send the present key again, or what they say is it.
        if isEntering, let latest, epoch <= latest.epoch { return settle(command) }
        // On the way in without one, it comes from the caller, as the invitation's.
        let isMembers = latest?.isForSomeDeviceOf(from.userId) ?? (!isEntering || from.userId == call?.caller.userId)
        let stranger = isMembers ? nil : notFromMember(from)
        if let refusal = refusalOfEpoch(callId, epoch) ?? stranger { return onUpdateRefused(callId, command, epoch, refusal) }
        // A person has come whom the record may not have yet.
        let added = event.text("added") ?? ""
        guard added.isEmpty, let record = call?.record else {
            let purpose = CallPurpose.keyUpdateRead(callId: callId, command: command, epoch: epoch, event: event)
            return request("GET", "call/\(callId)", purpose)
        }
        try openUpdate(callId, event, command, record)
    }

    func openUpdate(_ callId: String, _ event: [String: JSONValue], _ command: Int, _ record: CallRecord?) throws {
        let epoch = try event.needNumber("epoch")
        let reason = event.text("reason").flatMap(KeysReason.init)
        let update = CallPurpose.KeyUpdate(callId: callId, command: command, epoch: epoch, reason: reason, record: record)
        let hints = SetHints(sets: setsIn(call(callId), record), change: try changeIn(event))
        let use = Use(callId: callId, epoch: epoch)
        open(try event.needText("encryptedAESKey"), [try sealerOf(event)], use, hints, .keyUpdate(update))
    }

    func onUpdateRefused(_ callId: String, _ command: Int, _ epoch: Int, _ failure: CallsignError) {
        report(callId, failure)
        guard let call = call(callId), call.phase.entering == nil else { return settle(command) }
        // Any member can send what does not open: who has the key needs no other.
        let hasIt = call.newestKey.map { !$0.isProvisional && epoch <= $0.epoch } ?? false
        if hasIt && call.phase == .active { return settle(command) }
        request("GET", "call/\(callId)", .keylessRead(callId: callId, command: command))
    }

    func onUpdateOpened(_ update: CallPurpose.KeyUpdate, _ key: HeldKey) {
        let (callId, command) = (update.callId, update.command)
        if let refusal = refusalOfSet(callId, key, update.record) {
            return onUpdateRefused(callId, command, update.epoch, refusal)
        }
        if call(callId)?.isAsking == true { return takeGiven(callId, key, command) }
        hold(callId, key, reason: update.reason)
        settle(command)
    }

    /// Two were answered at once: the server may let this device into the one that is not to go on.
    private func giveUpEntering(_ callId: String) {
        for one in device.calls where one.callId != callId {
            guard let step = one.phase.entering?.step, step == .joining || step == .opening else { continue }
            sendLeave(one.callId)
            close(one.callId, .left)
        }
    }

    /// Another one that this device is in.
    private func otherThan(_ callId: String) -> DeviceCall? { device.calls.first { $0.callId != callId && $0.isIn } }

    /// Else it has ended, and may ring again.
    private func isClearing(_ callId: String) -> Bool { call(callId)?.phase.entering?.step == .clearing }

    private func leaveFor(_ callId: String, _ other: String, _ known: DeviceCall?) {
        let operation = known?.phase == .ringingOut ? "end" : "leave"
        setStep(callId, .clearing)
        request("POST", "call/\(other)/\(operation)", .clear(callId: callId, other: other))
    }

    /// Settles the commands that wait for the call.
    private func done(_ callId: String, _ goOn: () -> Void) {
        guard let entering = call(callId)?.phase.entering else { return }
        goOn()
        settleAll(entering.commands, callId: callId)
    }

    private func fail(_ callId: String, _ failure: CallsignError) {
        guard let entering = call(callId)?.phase.entering else { return }
        let mayBeIn = entering.from?.mayBeIn == true || (entering.step == .joining && failure.isUnheard)
        var settled = entering
        settled.commands = []
        change(callId) { $0.phase = .entering(settled) }
        if var from = entering.from, entering.rungOut == nil {
            if failure.hasCode("CALL_ENDED", "CALL_NOT_ACTIVE") {
                // The phone does not begin to ring once more until the reason comes.
                forget(callId)
                closeSoon(callId)
            } else {
                from.mayBeIn = mayBeIn
                enterPhase(callId, .ringingIn(from))
                if !mayBeIn { forget(callId) }
            }
        } else {
            if mayBeIn { sendLeave(callId) }
            close(callId, entering.rungOut ?? .unknown)
        }
        settleAll(entering.commands, failure)
    }

    private func setStep(_ callId: String, _ step: EnteringStep) {
        guard var entering = call(callId)?.phase.entering else { return }
        entering.step = step
        change(callId) { $0.phase = .entering(entering) }
    }
}

/// The device that is said to have sealed the key of a `key_update`.
func sealerOf(_ event: [String: JSONValue]) throws -> Sender {
    Sender(userId: try event.needId("fromUserId"), deviceId: try event.needId("fromDeviceId"))
}
