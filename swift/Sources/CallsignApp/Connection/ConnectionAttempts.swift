/// Attempts to connect: the token, the socket, what its close means, and the pause before the next one.
enum ConnectionAttempts {
    private static let faultCodes: Set = [1002, 1007, 1008, 1009]
    private static let overReasons: Set = ["token_missing", "token_invalid", "session_revoked"]

    /// A connection that lasted longer was a good one.
    private static let steadyMs = 5_000

    /// The bound of the first pause is two seconds; each failure doubles it.
    private static let firstPauseMs = 1_000
    private static let pauseMsMax = 60_000
    private static let doublingsMax = 6

    /// A pause ends at once.
    static func connect(_ step: inout ConnectionStep) {
        if step.phase.isIdle { askToken(&step, failures: 0) } else { endPause(&step) }
    }

    /// Ends what there is; the caller ends the socket.
    private static func stop(_ step: inout ConnectionStep, _ phase: ConnectionPhase) {
        for watch in step.connection.watches { step.settle(watch.command, error: .offline) }
        step.connection.watches = []
        forgetMessages(&step)
        step.enter(phase)
    }

    static func disconnect(_ step: inout ConnectionStep, _ command: Int) {
        let socket = step.phase.opened?.socket
        stop(&step, .off)
        if let socket {
            step.act(.asking(act: step.wait(.disconnect(command: command)), .disconnect(socket: socket)))
        } else {
            step.settle(command)
        }
    }

    /// The session has ended.
    static func endForGood(_ step: inout ConnectionStep) {
        let socket = step.phase.opened?.socket
        stop(&step, .off)
        if let socket { step.act(.abandon(socket: socket)) }
    }

    static func endPause(_ step: inout ConnectionStep) {
        if case .pausing = step.phase { askToken(&step) }
    }

    static func onTime(_ step: inout ConnectionStep) {
        if case .pausing(let untilMs) = step.phase, untilMs <= step.nowMs { askToken(&step) }
    }

    /// Takes the outcome of the present phase's act, and ignores one of an earlier phase.
    static func onPhaseDone(_ step: inout ConnectionStep, _ act: Int, _ token: String) {
        switch step.phase {
        case .token(act):
            let socket = step.number()
            step.enter(.opening(OpenedSocket(socket: socket, token: token)))
            step.act(.open(socket: socket, token: token))
        case .renewing(act, let retryAfterMs), .registering(act, let retryAfterMs): pause(&step, retryAfterMs)
        default: break
        }
    }

    static func onPhaseFailed(_ step: inout ConnectionStep, _ act: Int, _ failure: ConnectionFailure) {
        let retryAfterMs: Int
        let failures: Int
        switch step.phase {
        case .token(act):
            retryAfterMs = 0
            failures = failuresAfter(step)
        case .renewing(act, let waitMs), .registering(act, let waitMs):
            retryAfterMs = waitMs
            failures = step.connection.failures
        default: return
        }
        if failure.code != CallsignError.LocalCode.noAnswer { step.act(.trouble(failure)) }
        pause(&step, retryAfterMs, failures: failures)
    }

    static func onConnected(_ step: inout ConnectionStep, _ socket: Int, _ device: String?, _ serverMs: Int) {
        guard case .opening(let opened) = step.phase, opened.socket == socket else { return }
        if serverMs > 0 { step.act(.hearTime(serverMs: serverMs)) }
        if device != step.connection.deviceId { forgetDevice(&step, device) }
        var left: [Int] = []
        for queue in step.connection.queues {
            var headers = [
                StompHeader("id", queue.name),
                StompHeader("destination", "/user/queue/\(queue.name)"),
                StompHeader("ack", "client-individual"),
            ]
            if let since = queue.since { headers.append(StompHeader("since", since)) }
            left.append(step.request(socket, "SUBSCRIBE", headers, .queue(socket: socket)))
        }
        for watch in step.connection.watches { left.append(ConnectionWatches.subscribe(&step, socket, watch)) }
        step.enter(.subscribing(ConfirmedSocket(opened: opened, connectedAtMs: step.nowMs), left: left))
    }

    /// The server has a queue's subscription.
    static func onQueueSubscribed(_ step: inout ConnectionStep, _ act: Int, _ recovered: String?) {
        onSubscribed(&step, act, [recovered])
    }

    /// The server has a watch, or has refused it.
    static func onWatchAnswered(_ step: inout ConnectionStep, _ act: Int) { onSubscribed(&step, act, []) }

    private static func onSubscribed(_ step: inout ConnectionStep, _ act: Int, _ recovered: [String?]) {
        guard case .subscribing(let confirmed, let before, let known) = step.phase, before.contains(act) else { return }
        let left = before.filter { $0 != act }
        let all = known + recovered
        if !left.isEmpty { return step.enter(.subscribing(confirmed, left: left, recovered: all)) }
        step.enter(.connected(confirmed))
        step.act(.ready(mayHaveMissed: !all.contains("true") || all.contains("false")))
    }

    /// Where the connection broke, its close says more.
    static func onQueueRefused(_ step: inout ConnectionStep, _ socket: Int, _ failure: ConnectionFailure) {
        if failure.code == CallsignError.LocalCode.offline || socket != step.phase.opened?.socket { return }
        giveUp(&step, socket, failure)
    }

    /// The server breaks the protocol, or refuses a queue. The close of the socket follows as an input.
    static func giveUp(_ step: inout ConnectionStep, _ socket: Int, _ failure: ConnectionFailure) {
        step.act(.trouble(failure))
        step.act(.abandon(socket: socket))
    }

    /// The meaning of a close: the table of docs/protocol/socket.md.
    static func onClosed(_ step: inout ConnectionStep, _ close: ConnectionInput.Close) {
        guard let opened = step.phase.opened, opened.socket == close.socket else { return }
        let (code, reason, retryAfterMs, failure) = (close.code, close.reason, close.retryAfterMs, close.failure)
        if code == 4409 { return stop(&step, .elsewhere) }
        if code == 4403 || (code == 4401 && overReasons.contains(reason)) {
            let sentence = failure?.message ?? "The server has ended the session."
            let name = code == 4403 ? CallsignError.LocalCode.deviceRemoved : reason.uppercased()
            step.act(.endSession(ConnectionFailure(code: name, message: sentence)))
            return stop(&step, .off)
        }
        forgetMessages(&step)
        let failures = failuresAfter(step)
        if code == 4401 { return renew(&step, opened.token, retryAfterMs, failures) }
        if reason == "device_not_registered" { return register(&step, retryAfterMs, failures) }
        if faultCodes.contains(code) {
            step.act(.trouble(failure ?? ConnectionFailure(code: CallsignError.LocalCode.answerInvalid, message: reason)))
        }
        pause(&step, retryAfterMs, failures: failures)
    }

    private static func renew(_ step: inout ConnectionStep, _ token: String, _ retryAfterMs: Int, _ failures: Int) {
        let act = step.number()
        step.enter(.renewing(act: act, retryAfterMs: retryAfterMs), failures: failures)
        step.act(.asking(act: act, .renew(token: token)))
    }

    private static func register(_ step: inout ConnectionStep, _ retryAfterMs: Int, _ failures: Int) {
        let act = step.number()
        step.enter(.registering(act: act, retryAfterMs: retryAfterMs), failures: failures)
        step.act(.asking(act: act, .register))
    }

    private static func askToken(_ step: inout ConnectionStep, failures: Int? = nil) {
        let act = step.number()
        step.enter(.token(act: act), failures: failures)
        step.act(.asking(act: act, .token))
    }

    /// Full jitter: devices that lost their connections together come back one by one.
    private static func pause(_ step: inout ConnectionStep, _ retryAfterMs: Int, failures: Int? = nil) {
        let count = failures ?? step.connection.failures
        let boundMs = min(pauseMsMax, firstPauseMs << min(count, doublingsMax))
        let jitterMs = Int(step.random * Double(boundMs))
        step.enter(.pausing(untilMs: step.nowMs + max(jitterMs, retryAfterMs)), failures: count)
    }

    private static func failuresAfter(_ step: ConnectionStep) -> Int {
        let isSteady = step.phase.confirmed.map { step.nowMs - $0.connectedAtMs > steadyMs } ?? false
        return isSteady ? 1 : step.connection.failures + 1
    }

    /// Messages that no one has begun with come again on the next connection.
    private static func forgetMessages(_ step: inout ConnectionStep) {
        for at in step.connection.queues.indices { step.connection.queues[at].waiting = [] }
    }

    /// Another device has an inbox of its own.
    private static func forgetDevice(_ step: inout ConnectionStep, _ deviceId: String?) {
        for at in step.connection.queues.indices { step.connection.queues[at].since = nil }
        step.connection.deviceId = deviceId
        step.connection.seen = []
    }
}
