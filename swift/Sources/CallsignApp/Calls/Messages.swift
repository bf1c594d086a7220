import CallsignVerify

// Messages of the queue, and invitations by push.

extension Turn {
    func onInvitation(_ invitation: Invitation) {
        let rings = ringingOf(invitation)
        if !holds(rings) { ring(rings) }
    }

    func onQueue(_ event: [String: JSONValue], _ command: Int) throws {
        let type = event.text("type") ?? ""
        if type == "call_invitation" {
            onInvitation(try invitationOf(event))
            return settle(command)
        }
        guard let callId = event.callId() else { return settle(command) }
        let isRungOut = rungOut.contains(type)
        if isRungOut { dropHeld(callId) }
        let call = call(callId)
        // Such as another device that asks for the key, after a restart of both.
        if case .waiting(let early) = device.restoring, call.map({ !$0.isPresent && !isRungOut }) ?? true {
            device.restoring = .waiting(early + [Early(command: command, event: event)])
            return
        }
        if let call { return try onMessage(call, type, event, command) }
        // The answer to its start may come later.
        if type == "call_ended" && !device.starts.isEmpty { noteEnd(callId, invitedAtMs: 0) }
        settle(command)
    }

    private func onMessage(_ call: DeviceCall, _ type: String, _ event: [String: JSONValue], _ command: Int) throws {
        let callId = call.callId
        switch type {
        case "participant_request_rejoin": return try onAsked(callId, event, command)
        case "participant_accept_rejoin": return try onGranted(callId, event, command)
        case "key_update":
            guard let rings = call.phase.rings else { return try onUpdate(callId, event, command) }
            try onRenewedKey(callId, event, rings)
        case "call_cancelled": if !startsAgain(callId) { close(callId, .cancelled) }
        case "call_missed": onRungOut(callId, .missed)
        case "call_answered_elsewhere": onRungOut(callId, endingOf(event.text("reason").map { "\($0)_elsewhere" }))
        case "call_moved": onMoved(call, try event.needNumber("version"))
        case "call_ended": if !startsAgain(callId) { close(callId, endingOf(event.text("endReason"))) }
        case "key_missing": onKeyMissing(call, try event.needNumber("epoch"))
        case "media_ready": try onMedia(call, event)
        default: break
        }
        settle(command)
    }

    /// An older one is of before this device came back: its queue was slower than its request.
    private func onMoved(_ call: DeviceCall, _ version: Int) {
        if call.phase.entering != nil { return change(call.callId) { $0.movedVersion = version } }
        let isNew = call.record.map { version >= $0.version || isElsewhere($0) } ?? true
        if isNew { close(call.callId, .moved) }
    }

    private func onMedia(_ call: DeviceCall, _ event: [String: JSONValue]) throws {
        let roomId = event.number("roomId")
        let gateway = try gatewayOf(event.member("media"))
        // Either the call has left that room since, or the topic was faster: the record says which.
        if let record = call.record, roomId != record.roomId, try event.needNumber("version") < record.version {
            return refresh(call.callId)
        }
        change(call.callId) {
            $0.media = ReadyMedia(roomId: roomId, gateway: gateway)
            $0.record?.roomId = roomId
            $0.record?.media = gateway
        }
        emit(call.callId, .media(gateway))
    }
}

/// A call rings no more after these.
private let rungOut: Set = ["call_cancelled", "call_missed", "call_answered_elsewhere", "call_moved", "call_ended"]
