import CallsignVerify

// A call that this device starts, also one that the callee has started at the same instant.

extension Turn {
    /// Nothing rings unless every device of every callee verifies.
    func startCall(_ begun: Crossed) { sealStart(begun) }

    /// An invitation from the one person who is being called is held until it is known which of the two calls goes on.
    func holds(_ ringing: Ringing) -> Bool {
        let start = device.starts.first { $0.userIds == [ringing.caller.userId] && $0.closed == nil }
        guard var own = start, call(ringing.callId) == nil else { return false }
        own.held = ringing
        replace(own)
        return true
    }

    /// A held invitation rings no more: it was withdrawn, or another device of the user has answered.
    func dropHeld(_ callId: String) {
        guard var own = device.starts.first(where: { $0.held?.callId == callId }), let held = own.held else { return }
        noteEnd(callId, invitedAtMs: held.invitedAtMs)
        own.held = nil
        replace(own)
    }

    func onStartSealed(_ command: Int, _ texts: [String: JSONValue], _ set: KeySet) {
        guard var own = find(command) else { return }
        if own.closed != nil {
            take(command)
            return giveUp(own, hasEndedHere())
        }
        own.set = set
        replace(own)
        var body: [String: JSONValue] = [
            "callId": .string(own.callId),
            "calleeIds": idsOf(own.userIds),
            "keyMembers": .string(set.keyMembers),
            "encryptedAESKeys": .object(texts),
            "isVideo": .bool(own.options.isVideo),
        ]
        if let roomId = own.options.roomId { body["roomId"] = JSONValue(roomId) }
        request("POST", "call/start", .startCall(command: command), body: body)
    }

    func onStarted(_ command: Int, _ record: CallRecord) throws {
        guard let own = take(command) else { return }
        let callId = record.callId
        // Its key is bound to the id that this device has chosen.
        if callId != own.callId { return giveUp(own, answerInvalid()) }
        // It was joined by its id, and left, before this answer came.
        let isOver = device.ended.contains { $0.callId == callId }
        let before = call(callId)
        if isOver && before != nil { return giveUp(own, hasEndedHere()) }
        // Where it is known, the user is on the way back into it.
        let closed = before != nil ? nil : own.closed ?? (isOver ? .left : nil)
        // The app has joined it already, by an id that it has from elsewhere.
        if let entering = before?.phase.entering { settleAll(entering.commands, callId: callId) }
        if before == nil { add(record, record.person(device.userId), .ringingOut) }
        for other in device.calls where other.callId != callId && other.isAsking {
            sendLeave(other.callId)
            close(other.callId, .left)
        }
        if let closed {
            close(callId, closed)
            request("POST", "call/\(callId)/end", .giveUp(callId: callId, command: nil))
        } else {
            enter(record, HeldKey(epoch: firstEpoch, key: own.key, fromUserId: device.userId, set: try known(own.set)))
        }
        settle(command, callId: callId)
        if let held = own.held { ring(held) }
    }

    func onNotStarted(_ command: Int, _ failure: CallsignError) {
        guard let own = take(command) else { return }
        if own.closed == nil && failure.isChanged && own.triesLeft > 1 {
            return sealStart(own.begun, triesLeft: own.triesLeft - 1, isSecond: own.isSecond, held: own.held)
        }
        if failure.hasCode("CALL_CROSSED") && own.userIds.count == 1 && own.closed == nil {
            device.starts.append(own)
            let callId = failure.members.callId() ?? ""
            return request(
                "GET", "call/pending", .crossedPending(command: command, callId: callId, failure: failure))
        }
        giveUp(own, failure)
    }

    /// The callee's call is the one call: it is joined unasked if its key comes from that very person, and it is of these two.
    func onCrossed(_ command: Int, _ callId: String, _ items: [CallRecord], _ failure: CallsignError) {
        guard let own = find(command) else { return }
        guard let record = items.first(where: { $0.callId == callId }) else { return onCrossedCallOver(own, failure) }
        let ringing = ringingIn(record)
        let senders = sendersIn(record).filter { $0.userId == own.userIds.first }
        if record.participants.count != 2 || senders.isEmpty || own.closed != nil { return onNotTheirs(own, ringing, failure) }
        // This device was registered since it began to ring: it has no key of it, and asks for one.
        guard let ringing else {
            take(command)
            return onFound(record, command)
        }
        if let refusal = refusalOfEpoch(callId, ringing.epoch) { return onNotTheirs(own, ringing, refusal) }
        let crossed = CallPurpose.CrossedOpen(command: command, ringing: ringing, record: record, failure: failure)
        let use = Use(callId: callId, epoch: ringing.epoch)
        open(ringing.text, senders, use, SetHints(sets: setsIn(nil, record)), .crossedOpen(crossed))
    }

    func onCrossedOpened(_ crossed: CallPurpose.CrossedOpen, _ key: HeldKey) {
        let (command, ringing) = (crossed.command, crossed.ringing)
        let callId = ringing.callId
        if let refusal = refusalOfSet(callId, key, crossed.record) { return onCrossedRefused(command, ringing, refusal) }
        guard let own = take(command) else { return }
        let invited = Invited(epoch: ringing.epoch, text: ringing.text, state: .opened, key: key)
        let from = Rings(invited: invited, untilMs: ringing.untilMs)
        let begun = own.isSecond ? nil : own.begun
        let phase = CallPhase.entering(Entering(from: from, step: .clearing, commands: [command], crossed: begun))
        if let before = call(callId) {
            if before.phase.rings == nil { return settle(command, callId: callId) }
            enterPhase(callId, phase)
        } else {
            add(ringing, phase)
        }
        change(callId) { $0.isVerified = true }
        clear(callId)
    }

    func onCrossedRefused(_ command: Int, _ ringing: Ringing, _ failure: CallsignError) {
        if let own = find(command) { onNotTheirs(own, ringing, failure) }
    }

    /// Whether the call that ended was to be joined in place of a start: that is made once more.
    func startsAgain(_ callId: String) -> Bool {
        guard var entering = call(callId)?.phase.entering, let crossed = entering.crossed else { return false }
        entering.commands.removeAll { $0 == crossed.command }
        change(callId) { $0.phase = .entering(entering) }
        close(callId, .unknown)
        sealStart(crossed, isSecond: true)
        return true
    }

    /// The app is closed, or another installation goes on.
    func closeStarts(_ reason: CallEnding) {
        for at in device.starts.indices { device.starts[at].closed = reason }
    }

    /// It was over by then: it is started once more, once.
    private func onCrossedCallOver(_ own: CallStart, _ failure: CallsignError) {
        take(own.command)
        if own.isSecond || own.closed != nil { return giveUp(own, failure) }
        sealStart(own.begun, isSecond: true)
    }

    private func onNotTheirs(_ own: CallStart, _ held: Ringing?, _ failure: CallsignError) {
        take(own.command)
        var withHeld = own
        withHeld.held = held ?? own.held
        giveUp(withHeld, failure)
    }

    private func giveUp(_ own: CallStart, _ failure: CallsignError) {
        // The server may have begun it.
        if failure.isUnheard { sendLeave(own.callId) }
        settle(own.command, failure)
        if own.closed == nil, let held = own.held { ring(held) }
    }

    /// With a fresh key for each try.
    private func sealStart(_ begun: Crossed, triesLeft: Int = tries, isSecond: Bool = false, held: Ringing? = nil) {
        let (command, callId, userIds) = (begun.command, begun.callId, begun.userIds)
        let key = makeKey()
        let start = CallStart(
            command: command, callId: callId, userIds: userIds, options: begun.options, key: key, triesLeft: triesLeft,
            held: held, isSecond: isSecond)
        device.starts.append(start)
        seal(key, .users(userIds), Use(callId: callId, epoch: firstEpoch), .startSeal(command: command))
    }

    private func find(_ command: Int) -> CallStart? { device.starts.first { $0.command == command } }

    @discardableResult private func take(_ command: Int) -> CallStart? {
        let own = find(command)
        device.starts.removeAll { $0.command == command }
        return own
    }

    private func replace(_ start: CallStart) {
        for at in device.starts.indices where device.starts[at].command == start.command { device.starts[at] = start }
    }
}

extension CallStart {
    fileprivate var begun: Crossed { Crossed(command: command, callId: callId, userIds: userIds, options: options) }
}

private let firstEpoch = 1
