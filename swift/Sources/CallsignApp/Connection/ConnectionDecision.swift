// Decides the connection of one device, see docs/protocol/socket.md ("Connect"): an input, the time and a random number go in; the new
// state and the acts to carry out come out. It is `src/app/connection/device-connection.ts` without the tabs of browsers, and
// plays the same stories, `test/vectors/device-connection.jsonl`.

struct ConnectionDecision: Sendable {
    let connection: DeviceConnection
    let acts: [ConnectionAct]
}

extension DeviceConnection {
    /// `nowMs` never goes back; `random` is from 0 up to 1, which is not reached.
    func decide(_ input: ConnectionInput, nowMs: Int, random: Double) -> ConnectionDecision {
        var step = ConnectionStep(self, nowMs: nowMs, random: random)
        onInput(&step, input)
        return ConnectionDecision(connection: step.connection, acts: step.acts)
    }

    /// When `time` is to be said, if nothing else comes; nil where nothing is to happen by itself.
    var nextDeadlineMs: Int? {
        if case .pausing(let untilMs) = phase { untilMs } else { ConnectionQueues.nextMessageMs(self) }
    }
}

private func onInput(_ step: inout ConnectionStep, _ input: ConnectionInput) {
    switch input {
    case .connect: ConnectionAttempts.connect(&step)
    case .disconnect(let command): ConnectionAttempts.disconnect(&step, command)
    case .watch(let command, let destination): ConnectionWatches.watch(&step, command, destination)
    case .unwatch(let watch): ConnectionWatches.unwatch(&step, watch)
    case .send(let command, let destination, let body): send(&step, command, destination, body)
    case .online: ConnectionAttempts.endPause(&step)
    case .over: ConnectionAttempts.endForGood(&step)
    case .connected(let socket, let device, let serverMs): ConnectionAttempts.onConnected(&step, socket, device, serverMs)
    case .message(let message): ConnectionQueues.onMessage(&step, message)
    case .closed(let close): ConnectionAttempts.onClosed(&step, close)
    case .time:
        ConnectionAttempts.onTime(&step)
        ConnectionQueues.onTime(&step)
    case .done(let act, let token, let recovered):
        onOutcome(&step, act, token: token ?? "", recovered: recovered, failure: nil)
    case .failed(let act, let failure):
        onOutcome(&step, act, token: "", recovered: nil, failure: failure)
    }
}

private func send(_ step: inout ConnectionStep, _ command: Int, _ destination: String, _ body: String) {
    guard let socket = step.phase.confirmed?.opened.socket else { return step.settle(command, error: .offline) }
    step.request(socket, "SEND", [StompHeader("destination", destination)], .send(command: command), body: body)
}

private func onOutcome(
    _ step: inout ConnectionStep,
    _ act: Int,
    token: String,
    recovered: String?,
    failure: ConnectionFailure?
) {
    guard let at = step.connection.waiting.firstIndex(where: { $0.act == act }) else {
        if let failure { ConnectionAttempts.onPhaseFailed(&step, act, failure) } else {
            ConnectionAttempts.onPhaseDone(&step, act, token)
        }
        return
    }
    let waiting = step.connection.waiting.remove(at: at)
    switch waiting.purpose {
    case .queue(let socket):
        switch failure?.code {
        case nil: ConnectionAttempts.onQueueSubscribed(&step, act, recovered)
        // Its user has not approved the device yet: the account's queue is enough to hear of that.
        case "DEVICE_NOT_LISTED": ConnectionAttempts.onWatchAnswered(&step, act)
        default: if let failure { ConnectionAttempts.onQueueRefused(&step, socket, failure) }
        }
    case .watch(let socket, let id):
        if let failure { ConnectionWatches.onRefused(&step, id, failure) } else { ConnectionWatches.onWatched(&step, socket, id) }
        ConnectionAttempts.onWatchAnswered(&step, act)
    case .handle(let queue, let message): ConnectionQueues.onHandled(&step, queue, message, failure)
    case .ack(let queue, let messageId, let socket):
        if failure == nil { ConnectionQueues.onAcknowledged(&step, queue, messageId, socket) }
    case .send(let command): step.settle(command, error: failure)
    case .disconnect(let command): step.settle(command, error: failure)
    }
}
