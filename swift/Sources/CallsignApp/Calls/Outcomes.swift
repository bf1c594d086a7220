import CallsignVerify

// Outcomes of acts.

extension Turn {
    func onDone(_ done: CallInput.Done) throws {
        guard let purpose = take(waiting: done.act) else { return }
        func record() throws -> CallRecord { try callRecordOf(done.body) }
        switch purpose {
        case .startSeal(let command): onStartSealed(command, done.texts, done.set)
        case .startCall(let command): try onStarted(command, record())
        case .crossedPending(let command, let callId, let failure): onCrossed(command, callId, try itemsIn(done.body), failure)
        case .crossedOpen(let crossed): onCrossedOpened(crossed, done.opened(crossed.ringing.epoch))
        case .command(_, let command, _), .askBeside(_, let command): settle(command)
        case .leave(let callId, let command):
            onLeft(callId)
            settle(command)
        case .end(let callId, let command):
            close(callId, done.body.text("endReason").map(endingOf) ?? .hangup)
            settle(command)
        case .joinFind(_, let command): onFound(try record(), command)
        case .invitedRead(let callId, let key):
            if let refusal = onInvitedRead(try record(), key) { onKeyRefused(callId, key, refusal) }
        case .invitedOpen(let callId, let key, let record): onInvitationOpened(callId, key, record, done)
        case .clear(let callId, let other): onCleared(callId, other, done.body.text("endReason"))
        case .join: onJoined(try record())
        case .joinedOpen(_, let record): onJoinedOpened(record, done.opened(record.keyEpoch))
        case .keptLeave(let leave): onKeptLeft(leave)
        case .watch(let callId): onWatched(callId)
        case .keyUpdateRead(let callId, let command, _, let event):
            let record = try record()
            showIfNewer(callId, record)
            try openUpdate(callId, event, command, record)
        case .keyUpdate(let update): onUpdateOpened(update, done.opened(update.epoch))
        case .keylessRead(let callId, let command):
            if call(callId)?.isIn == true { ask(try record()) }
            settle(command)
        case .sendAsk(let callId): onAskSent(callId, try done.body.needDurationMs("expiresIn"))
        case .returnAsHost: onReturned(try record())
        case .grantedOpen(let callId, let command, let epoch): onGrantOpened(callId, done.opened(epoch), command)
        case .comeBack(_, let command, let key): onCameBack(try record(), key, command)
        case .askedRead(_, let command, let ask): onAskerRead(try record(), ask, command)
        case .grantSeal(let sealed): onGrantSealed(sealed, done.text)
        case .keysRead(let sending): onKeysRead(sending, try record())
        case .keysSeal(let sending): onKeysSealed(sending, done.texts, sending.set ?? done.set, done.without)
        case .keys(let sending): if let record = onKeysSent(sending) { begin(record, .active) }
        case .remove(let removal):
            if removal.command != nil { renewWithout(removal.callId) }
            settle(removal.command)
        case .inviteRead(let invite): onInviteRead(invite, try record())
        case .inviteSeal(let invite): try onInviteSealed(invite, done.texts, done.set)
        case .sendInvite(let invite): try onInvited(invite, record())
        case .pending, .restore, .giveUp, .refresh: try onConnectedDone(purpose, done)
        }
    }

    /// Of what the connection's command waits for.
    private func onConnectedDone(_ purpose: CallPurpose, _ done: CallInput.Done) throws {
        switch purpose {
        case .pending(let command, let kept): onPending(try itemsIn(done.body), command, kept)
        case .restore(let callId, let command): onRestored(callId, try callRecordOf(done.body), command)
        case .giveUp(let callId, _): close(callId, .keyLost)
        case .refresh(let callId, _, let again): onRefreshed(callId, try callRecordOf(done.body), again)
        default: break
        }
        settleWhenDone(purpose.command)
    }

    func onFailed(_ act: Int, _ failure: CallsignError) {
        guard let purpose = take(waiting: act) else { return }
        switch purpose {
        case .startSeal(let command), .startCall(let command): onNotStarted(command, failure)
        case .crossedPending(let command, let callId, let refused): onCrossed(command, callId, [], refused)
        case .crossedOpen(let crossed): onCrossedRefused(crossed.command, crossed.ringing, crossed.failure)
        case .leave(let callId, let command):
            // It has ended here in any case; where the server knows of no such call any more, it need not be told again.
            if failure.isGone { onLeft(callId) } else if failure.hasCode("NO_ANSWER") { leaveAgain(callId) }
            settle(command)
        case .invitedRead(let callId, let key), .invitedOpen(let callId, let key, _): onKeyRefused(callId, key, failure)
        case .clear(let callId, let other): onNotCleared(callId, other, failure)
        case .join(let callId):
            let isOver = failure.hasCode("CALL_ENDED", "CALL_NOT_ACTIVE")
            if !isOver || !startsAgain(callId) { onNotJoined(callId, failure) }
        case .joinedOpen(_, let record): onJoinedRefused(record, failure)
        case .keptLeave(let leave):
            if failure.isUnheard { return notRestored(leave.command, failure) }
            onKeptLeft(leave)
        case .pending(let command, _): notRestored(command, failure)
        case .restore(let callId, let command):
            if !failure.isGone { return notRestored(command, failure) }
            onRestored(callId, nil, command)
            settleWhenDone(command)
        case .giveUp(let callId, let command):
            // A callee may have answered.
            if failure.isUnheard { sendLeave(callId) }
            close(callId, .keyLost)
            failConnected(command, failure)
        case .refresh(let callId, let command, _):
            onNotRefreshed(callId, failure, command)
            // The shell connects once more.
            if command != nil && failure.isUnheard { failConnected(command, failure) } else { settleWhenDone(command) }
        case .watch(let callId): onNotWatched(callId, failure)
        case .keyUpdateRead(let callId, let command, let epoch, _): onUpdateRefused(callId, command, epoch, failure)
        case .keyUpdate(let update): onUpdateRefused(update.callId, update.command, update.epoch, failure)
        case .keylessRead(let callId, let command):
            onNotRead(callId, failure)
            settle(command, failure)
        case .sendAsk(let callId): onNotBack(callId, failure)
        case .returnAsHost(let callId):
            onNotBack(callId, failure)
            leaveUnheard(callId, failure)
        case .comeBack(let callId, let command, _): onNotComeBack(callId, command, failure)
        case .keysRead(let sending), .keysSeal(let sending): onKeysFailed(sending, failure)
        case .keys(let sending):
            onKeysFailed(sending, failure)
            if failure.isUnheard { onUnheard(sending.callId) }
        case .remove(let removal):
            if !removal.isKnown { onNotRemoved(removal.callId, removal.userId) }
            onRefused(purpose, failure)
        case .inviteRead(let invite), .inviteSeal(let invite): onInviteFailed(invite, failure)
        case .sendInvite(let invite):
            if failure.isUnheard { onUnheard(invite.callId) }
            onInviteFailed(invite, failure)
        case .command(_, let command, let unless):
            if failure.code == unless { settle(command) } else { onRefused(purpose, failure) }
        case .end, .joinFind, .askBeside, .grantedOpen, .askedRead, .grantSeal: onRefused(purpose, failure)
        }
    }

    /// What the act was for. An outcome that comes twice has none any more.
    private func take(waiting act: Int) -> CallPurpose? {
        guard let at = device.waiting.firstIndex(where: { $0.act == act }) else { return nil }
        return device.waiting.remove(at: at).purpose
    }

    private func onInvitationOpened(_ callId: String, _ named: InvitedKey, _ record: CallRecord, _ done: CallInput.Done) {
        let key = done.opened(0)
        if let refusal = refusalOfSet(callId, key, record) ?? refusalOfAge(callId, done.sealedAgoMs) {
            onKeyRefused(callId, named, refusal)
        } else if onInvitedOpened(callId, named, key) {
            onInvitedKey(callId)
        }
    }

    /// Those that were to be left after this one go on.
    private func onKeptLeft(_ leave: CallPurpose.KeptLeave) {
        onLeft(leave.callId)
        let after = leave.kept.leaving.drop { $0 != leave.callId }.dropFirst()
        leaveKept(leave.command, leave.kept, Array(after))
    }

    private func onNotComeBack(_ callId: String, _ command: Int?, _ failure: CallsignError) {
        onNotBack(callId, failure)
        leaveUnheard(callId, failure)
        // The server may have it in, and messages of before that are next in the queue.
        if failure.hasCode("NO_ANSWER") && call(callId)?.isIn == true {
            return request("GET", "call/\(callId)", .keylessRead(callId: callId, command: command))
        }
        settle(command)
    }

    private func onRefused(_ purpose: CallPurpose, _ failure: CallsignError) {
        if failure.hasCode("CALL_ENDED"), let callId = purpose.callId { closeSoon(callId) }
        settle(purpose.command, failure)
    }

    /// It has ended here meanwhile, and the server may have let this device in.
    private func leaveUnheard(_ callId: String, _ failure: CallsignError) {
        if call(callId) == nil && failure.isUnheard { leaveUnknown(callId) }
    }

    private func onKeyRefused(_ callId: String, _ key: InvitedKey, _ failure: CallsignError) {
        if onInvitedRefused(callId, key, failure) { onInvitedKey(callId, failure) }
    }

    private func onKeysFailed(_ sending: NewKey, _ failure: CallsignError) {
        if onKeysNotSent(sending, failure) { onNotBack(sending.callId, failure) }
    }

    private func onInviteFailed(_ asked: Invite, _ failure: CallsignError) {
        guard failure.isChanged && asked.triesLeft > 1 else { return settle(asked.command, failure) }
        var again = asked
        again.triesLeft -= 1
        invite(again)
    }
}

extension CallInput.Done {
    /// The key that was opened, as that of this epoch.
    fileprivate func opened(_ epoch: Int) -> HeldKey {
        HeldKey(epoch: epoch, key: key ?? 0, fromUserId: from?.userId ?? 0, set: set, unlisted: unlisted)
    }
}

private func itemsIn(_ body: [String: JSONValue]) throws -> [CallRecord] { try body.members("items").map(callRecordOf) }
