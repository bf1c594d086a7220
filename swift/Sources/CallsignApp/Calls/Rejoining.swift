// A call whose key is gone, with a restart or a long loss of the network: this device asks those in the call, comes back with
// the first key that opens, and as the host makes another one when no device has it. It also answers such asks.

import CallsignVerify

extension Turn {
    /// Shows the call as one that this device asks into.
    func ask(_ record: CallRecord) {
        begin(record, .rejoining(.asking))
        askAgain(record.callId)
    }

    /// The call could not be read for an ask: it is asked for with the record that is here.
    func onNotRead(_ callId: String, _ failure: CallsignError) {
        let record = call(callId)?.record
        if failure.isGone { closeSoon(callId) } else if let record { ask(record) }
    }

    /// Without a key it is asked for again after the next connection, and after a while.
    func askAgain(_ callId: String) {
        if setAsk(callId, .asking) { requestKey(callId, .sendAsk(callId: callId)) }
    }

    /// An ask that is repeated has the nonce that it had.
    private func requestKey(_ callId: String, _ purpose: CallPurpose) {
        let nonce = call(callId)?.nonce ?? number()
        change(callId) { $0.nonce = nonce }
        request("POST", "call/\(callId)/request-rejoin", purpose, nonce: nonce)
    }

    func onAskSent(_ callId: String, _ expiresInMs: Int) {
        // It gave up meanwhile, or has the key.
        guard call(callId)?.phase.ask == .asking else { return }
        setAsk(callId, .asked(untilMs: nowMs + (expiresInMs > 0 ? expiresInMs : againMs)))
        giveUpWhenAllAsk(callId)
    }

    /// An ask, or a return, failed.
    func onNotBack(_ callId: String, _ failure: CallsignError) {
        guard call(callId)?.isAsking == true else { return }
        if failure.hasCode("NO_ACTIVE_PARTICIPANT") { return returnWithNewKey(callId) }
        if failure.isGone { return closeSoon(callId) }
        setAsk(callId, .pausing(untilMs: nowMs + againMs))
        report(callId, failure)
    }

    /// Those who had the key may all be gone.
    func onHostChanged(_ callId: String) {
        if call(callId)?.phase.isKeyless == true { onNobodyGrants(callId) }
    }

    /// A device of a participant has no key: it gets the key once it verifies. One that is not the device which they had joined
    /// with waits until the person here says so: a server could have made it up.
    func onAsked(_ callId: String, _ event: [String: JSONValue], _ command: Int) throws {
        guard let call = call(callId), call.isPresent else { return settle(command) }
        let userId = try event.needId("userId")
        if call.newestKey != nil {
            let ask = KeyAsk(
                userId: userId,
                deviceId: try event.needId("deviceId"),
                displayName: event.text("displayName") ?? "",
                publicKeyHash: try event.needText("publicKeyHash"),
                nonce: event.text("nonce")
            )
            return request("GET", "call/\(callId)", .askedRead(callId: callId, command: command, ask: ask))
        }
        change(callId) { $0.askers = $0.askers.filter { $0 != userId } + [userId] }
        giveUpWhenAllAsk(callId)
        settle(command)
    }

    func onAskerRead(_ record: CallRecord, _ ask: KeyAsk, _ command: Int) {
        let callId = record.callId
        let call = call(callId)
        // The newest key is on its way here, or was this host's. The server would pass on the one before under the newest
        // epoch.
        let epoch = call?.newestKey?.epoch ?? 0
        if let call, epoch < record.keyEpoch || isOutdated(call, epoch) {
            if call.record?.hostUserId == device.userId && !call.isAsking { renew(callId) }
            return settle(command)
        }
        guard let held = call?.newestKey, let asker = record.participant(ask.userId), asker.state != .removed,
            call?.removed.contains(ask.userId) != true
        else { return settle(command) }
        let hasJoined = asker.deviceId == ask.deviceId
        if hasJoined && held.isFor(ask.deviceName) { return grant(callId, ask, command) }
        if !mayRenew(callId, record) { return settle(command) }
        if hasJoined { return grant(callId, ask, command) }
        emit(callId, .keyAsked(ask))
        settle(command)
    }

    /// A device that the key is for gets it once more. Any other gets the next one, so it opens nothing of before.
    func grant(_ callId: String, _ ask: KeyAsk, _ command: Int) {
        guard let held = call(callId)?.newestKey else { return settle(command) }
        if !held.isFor(ask.deviceName) {
            let admitted = Sender(userId: ask.userId, deviceId: ask.deviceId)
            change(callId) { $0.admitted = $0.admitted.filter { $0.userId != ask.userId } + [admitted] }
            renew(callId)
            return settle(command)
        }
        let purpose = CallPurpose.grantSeal(.init(callId: callId, command: command, ask: ask, epoch: held.epoch))
        let asker = Receivers.asker(ask, keyMembers: held.set.keyMembers)
        seal(held.key, asker, Use(callId: callId, epoch: held.epoch), purpose, nonce: ask.nonce)
    }

    func onGrantSealed(_ sealed: CallPurpose.GrantSeal, _ text: String?) {
        let callId = sealed.callId
        var body: [String: JSONValue] = [
            "requesterUserId": .string("\(sealed.ask.userId)"),
            "requesterDeviceId": .string("\(sealed.ask.deviceId)"),
            "epoch": JSONValue(sealed.epoch),
        ]
        body["encryptedAESKey"] = text.map(JSONValue.string)
        // A newer key is on its way to all, the asker among them.
        let purpose = CallPurpose.command(callId: callId, command: sealed.command, unless: "EPOCH_CONFLICT")
        request("POST", "call/\(callId)/accept-rejoin", purpose, body: body)
    }

    /// Asks while the call goes on: the key that this device has does not open what a member sends. Once for each member and
    /// key, which may not be what is wrong. The host's key is the right one.
    func askBeside(_ callId: String, _ command: Int?, _ userId: UInt64?) {
        guard let call = call(callId), call.phase == .active, call.record?.hostUserId != device.userId else {
            return settle(command)
        }
        if let userId, call.unopened.contains(userId) || call.unopened.count >= unopenedMax { return settle(command) }
        change(callId) {
            $0.key.isAsked = true
            if let userId { $0.unopened.append(userId) }
        }
        requestKey(callId, .askBeside(callId: callId, command: command))
    }

    /// The call goes on with a key that this device was not given.
    func onKeyMissing(_ call: DeviceCall, _ epoch: Int) {
        let isOld = epoch <= (call.newestKey?.epoch ?? 0)
        if !isOld && call.isIn, let record = call.record { ask(record) }
    }

    /// No newer key came in time: what is sent is sealed with none that a person may have who is out.
    func onOutdated(_ callId: String) {
        guard let call = call(callId), let record = call.record else { return }
        // Even if this device is alone: a server could say so for a moment.
        change(callId) { $0.sending = Sending(epoch: 0, uses: [], drops: []) }
        if !call.isAsking { ask(record) }
    }

    /// The call was read, and has a newer key than this device, which may have missed it.
    func onBehind(_ callId: String) {
        guard let call = call(callId), let record = call.record, call.phase == .active, !call.key.isAsked else { return }
        if call.rotation.renewing != nil || record.keyEpoch <= (call.newestKey?.epoch ?? 0) { return }
        if record.hostUserId == device.userId { planAgain(callId) } else { askBeside(callId, nil, nil) }
    }

    /// Takes the first answer that opens. A device that has a key takes a newer one, or the host's.
    func onGranted(_ callId: String, _ event: [String: JSONValue], _ command: Int) throws {
        let epoch = try event.needNumber("keyEpoch")
        let from = Sender(userId: try event.needId("fromUserId"), deviceId: try event.needId("fromDeviceId"))
        let call = call(callId)
        if !isWanted(callId, epoch, from.userId) { return settle(command) }
        let isStranger = call?.newestKey.map { !$0.isForSomeDeviceOf(from.userId) } ?? false
        if let refusal = refusalOfEpoch(callId, epoch) ?? (isStranger ? notFromMember(from) : nil) {
            report(callId, refusal)
            return settle(command)
        }
        let use = Use(callId: callId, epoch: epoch)
        let hints = SetHints(sets: setsIn(call, call?.record))
        let purpose = CallPurpose.grantedOpen(callId: callId, command: command, epoch: epoch)
        open(try event.needText("encryptedAESKey"), [from], use, hints, purpose, nonce: call?.nonce)
    }

    func onGrantOpened(_ callId: String, _ key: HeldKey, _ command: Int) {
        if !isWanted(callId, key.epoch, key.fromUserId) { return settle(command) }
        guard let refusal = refusalOfSet(callId, key, call(callId)?.record) else { return takeGiven(callId, key, command) }
        report(callId, refusal)
        settle(command)
    }

    /// The host's key counts. Where another device was faster, the host has a moment to give one.
    func takeGiven(_ callId: String, _ key: HeldKey, _ command: Int) {
        guard let call = call(callId), !isOutdated(call, key.epoch) else { return settle(command) }
        let host = call.record.flatMap { $0.participant($0.hostUserId) }
        let isHosts = key.fromUserId == call.record?.hostUserId
        let isAwaited = host?.state == .joined && host?.userId != device.userId
        if isHosts && call.phase == .active && !call.key.isAsked {
            hold(callId, key)
            return settle(command)
        }
        if isHosts || !isAwaited { return comeBack(callId, key, command) }
        let offer = call.offer
        if offer.map({ key.epoch > $0.key.epoch }) ?? true {
            var provisional = key
            provisional.isProvisional = true
            let atMs = offer?.atMs ?? nowMs + hostWaitMs
            change(callId) { $0.offer = Offer(key: provisional, atMs: atMs) }
        }
        settle(command)
    }

    /// The host has given none.
    func onOfferDue(_ callId: String) {
        guard let key = call(callId)?.offer?.key else { return }
        change(callId) { $0.offer = nil }
        if isWanted(callId, key.epoch, key.fromUserId) { comeBack(callId, key, nil) }
    }

    /// Into the call, with the key that this device was given.
    func comeBack(_ callId: String, _ key: HeldKey, _ command: Int?) {
        setAsk(callId, .returning)
        request("POST", "call/\(callId)/rejoin", .comeBack(callId: callId, command: command, key: key))
    }

    func onCameBack(_ record: CallRecord, _ key: HeldKey, _ command: Int?) {
        settle(command)
        let callId = record.callId
        guard let call = call(callId) else { return leaveUnknown(callId) }
        // This answer is of before.
        if !call.isIn { return }
        // It has made a newer one meanwhile.
        let isWanting = call.isAsking || call.key.isAsked
        if !isWanting && (call.newestKey?.epoch ?? 0) >= key.epoch { return change(callId) { $0.record = record } }
        // It was sent before this device was lost, and there is a newer one since.
        if key.epoch < record.keyEpoch || isOutdated(call, key.epoch) { return ask(record) }
        change(callId) { $0.askers = [] }
        enter(record, key)
    }

    /// The host returns, to make the key.
    func onReturned(_ record: CallRecord) {
        let callId = record.callId
        guard let call = call(callId) else { return leaveUnknown(callId) }
        if !call.isAsking { return }
        // What was sent before it is older.
        change(callId) { $0.record = record }
        if record.hostUserId == device.userId { return renew(callId, returning: record) }
        enterPhase(callId, .keyless(.pausing(untilMs: nowMs + againMs)))
    }

    /// An ask was not answered in time, or no one is left to answer.
    func onNobodyGrants(_ callId: String) {
        guard let call = call(callId), let ask = call.phase.ask else { return }
        enterPhase(callId, .keyless(ask == .returning ? ask : .pausing(untilMs: nowMs + againMs)))
        if call.record?.hostUserId == device.userId { returnWithNewKey(callId) }
    }

    private func isWanted(_ callId: String, _ epoch: Int, _ fromUserId: UInt64) -> Bool {
        guard let call = call(callId) else { return false }
        let held = call.newestKey
        let isHosts = fromUserId == call.record?.hostUserId
        let isBetter = epoch > (held?.epoch ?? 0) || (epoch == held?.epoch && isHosts)
        let isOpen = call.key.isAsked || (isHosts && held?.isProvisional == true)
        return call.isAsking || (isOpen && call.phase == .active && isBetter)
    }

    /// No device has the key any more: the host makes another one, once for all that say so.
    private func returnWithNewKey(_ callId: String) {
        guard let ask = call(callId)?.phase.ask, ask != .returning else { return }
        setAsk(callId, .returning)
        request("POST", "call/\(callId)/rejoin", .returnAsHost(callId: callId))
    }

    /// When all other devices ask too, none will answer: waiting is pointless.
    private func giveUpWhenAllAsk(_ callId: String) {
        guard let call = call(callId), call.isAsking else { return }
        let others = call.record?.participants.filter { $0.state == .joined && $0.userId != device.userId } ?? []
        if others.allSatisfy({ call.askers.contains($0.userId) }) { onNobodyGrants(callId) }
    }

    /// Whether this device asks at all.
    @discardableResult private func setAsk(_ callId: String, _ ask: Ask) -> Bool {
        guard let call = call(callId), call.isAsking else { return false }
        change(callId) { $0.phase = call.phase.asking(ask) }
        return true
    }
}

private let againMs = 30_000
private let hostWaitMs = 5_000

/// The names of those who send are the gateway's word.
private let unopenedMax = 8
