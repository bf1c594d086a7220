// The connection of one device, see docs/protocol/socket.md ("Connect"): it comes back by itself, hands each event of the device's queues
// over once, in order, and acknowledges what was handled. `ConnectionDecision.swift` decides; this carries out its acts one after
// the other, and gives it what comes of them.
import CallsignVerify
import Foundation

/// `elsewhere`: another connection of this device took over; it stays so until `Callsign.connect`.
public enum ConnectionState: String, Sendable {
    case off
    case connecting
    case connected
    case elsewhere
}

@CallsignActor protocol ConnectionListener: AnyObject, Sendable {
    /// Called with each new state, and after each attempt that failed. `failures` counts those in a row.
    func onState(_ state: ConnectionState, failures: Int)

    /// All subscriptions are there, also after each reconnection: read what events may have been missed.
    func onConnected() async throws

    /// An event of the device's queues, of a type that a newer server may have added. The next one of its queue waits until this
    /// one is done, and is acknowledged then. It counts as done when it throws, too, after `onTrouble`.
    func onEvent(_ event: [String: JSONValue]) async throws

    /// The server asks for the device of this session to be registered.
    func onDeviceMissing() async throws

    func onTrouble(_ error: any Error)
}

@CallsignActor final class Connection {
    private let server: Server
    private let session: Session
    private let listener: any ConnectionListener
    private let heartBeatMs: HeartBeatMs
    private var connection = DeviceConnection()
    private let startedAt = ContinuousClock.now

    /// Complete with the id of the watch, if the command is one.
    private var commands: [Int: Deferred<String?>] = [:]
    private var commandCount = 0

    /// By the watch, whose id names its command.
    private var topics: [String: @CallsignActor ([String: JSONValue]) throws -> Void] = [:]

    /// Each until its close was judged.
    private var sockets: [Int: StompSocket] = [:]

    /// What is carried out now, by its act.
    private var running: [Int: Task<Void, Never>] = [:]

    /// The listener's reading after the newest connection.
    private var readying: Task<Void, Never>?

    /// They came while another one was carried out.
    private var inputs: [ConnectionInput] = []
    private var isBusy = false
    private var isAborted = false
    private var timer: Task<Void, Never>?
    private var timerAtMs: Int?

    init(
        _ server: Server,
        _ session: Session,
        _ listener: any ConnectionListener,
        heartBeatMs: HeartBeatMs = HeartBeatMs(outgoing: 10_000, incoming: 10_000)
    ) {
        self.server = server
        self.session = session
        self.listener = listener
        self.heartBeatMs = heartBeatMs
    }

    /// By a clock that runs evenly. Nil without a connection; another one with each.
    var connectedAtMs: Int? { connection.phase.confirmed?.connectedAtMs }

    var state: ConnectionState { connection.phase.state }

    /// Attempts that failed in a row, those after a short connection too.
    var failures: Int { connection.failures }

    /// Connects, and stays connected until `disconnect`. A pause before the next attempt ends at once.
    func connect() { take(.connect) }

    /// Returns when the server has carried out what was sent before. Ends all watches.
    func disconnect() async throws { _ = try await command { .disconnect(command: $0) } }

    /// Subscribes to a topic. Returns what ends the watch when the server has it, which may take until the next connection; it is
    /// subscribed again after each reconnection. Throws the server's refusal.
    func watch(
        _ destination: String,
        _ listener: @escaping @CallsignActor ([String: JSONValue]) throws -> Void
    ) async throws -> @CallsignActor @Sendable () -> Void {
        let watch = try await command { number in
            topics[Self.watchId(number)] = listener
            return .watch(command: number, destination: destination)
        }
        return { if let watch { self.take(.unwatch(watch: watch)) } }
    }

    /// Returns when the server has carried it out, and has it on disk. Throws the server's refusal, `BODY_TOO_LARGE`, or
    /// `OFFLINE`; then it may have been carried out.
    func send(_ destination: String, _ body: [String: JSONValue]) async throws {
        _ = try await command { .send(command: $0, destination: destination, body: JSONValue.object(body).text) }
    }

    /// Ends everything at once: nothing more is acknowledged or told, and what waits throws `OFFLINE`.
    func abort() {
        isAborted = true
        timer?.cancel()
        readying?.cancel()
        for task in running.values { task.cancel() }
        for socket in sockets.values { socket.abandon() }
        for answer in commands.values { answer.fail(offline()) }
        commands = [:]
    }

    private func command(_ inputOf: (Int) -> ConnectionInput) async throws -> String? {
        if isAborted { throw offline() }
        commandCount += 1
        let answer = Deferred<String?>()
        commands[commandCount] = answer
        take(inputOf(commandCount))
        return try await answer.value
    }

    /// One input at a time, each with all its acts.
    private func take(_ input: ConnectionInput) {
        if isAborted { return }
        inputs.append(input)
        if isBusy { return }
        isBusy = true
        defer { isBusy = false }
        while !inputs.isEmpty {
            let next = inputs.removeFirst()
            let nowMs = elapsedMs
            let decision = connection.decide(next, nowMs: nowMs, random: Double.random(in: 0..<1))
            connection = decision.connection
            for act in decision.acts { carryOut(act) }
            wakeInTime(nowMs)
        }
    }

    private var elapsedMs: Int {
        let (seconds, attoseconds) = (ContinuousClock.now - startedAt).components
        return Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
    }

    private func carryOut(_ act: ConnectionAct) {
        switch act {
        case .asking(let number, let question): ask(number, question)
        case .endSession(let failure): session.endBy(error(in: failure))
        case .hearTime(let serverMs): server.hearTime(serverMs)
        case .open(let socket, let token): open(socket, token)
        case .tell(let socket, let command, let headers): sockets[socket]?.tell(command, headers)
        case .abandon(let socket): sockets[socket]?.abandon()
        case .topic(let watch, let event): tellTopic(watch, event)
        case .settle(let command, let watch, let failure): settle(command, watch, failure)
        case .state(let state, let failures): listener.onState(state, failures: failures)
        case .ready: readying = Task { await reporting(listener.onTrouble) { try await listener.onConnected() } }
        case .trouble(let failure): listener.onTrouble(failure.cause ?? error(in: failure))
        }
    }

    private func ask(_ act: Int, _ question: ConnectionQuestion) {
        let begun: Deferred<[String: String]>?
        do {
            // Frames leave in the order of the acts.
            begun = try beginRequest(question)
        } catch {
            return take(.failed(act: act, failure: failure(of: error)))
        }
        running[act] = Task {
            let outcome: ConnectionInput
            do {
                outcome = try await self.outcome(of: act, question, begun)
            } catch {
                // Without a session no further attempt can succeed.
                if Self.isOfSession(question) && session.userId == nil { take(.over) }
                outcome = .failed(act: act, failure: failure(of: error))
            }
            running[act] = nil
            take(outcome)
        }
    }

    private func beginRequest(_ question: ConnectionQuestion) throws -> Deferred<[String: String]>? {
        guard case .request(let socket, let command, let headers, let body) = question else { return nil }
        guard let opened = sockets[socket] else { throw offline() }
        return try opened.begin(command, headers, body: body)
    }

    private func outcome(
        of act: Int,
        _ question: ConnectionQuestion,
        _ begun: Deferred<[String: String]>?
    ) async throws -> ConnectionInput {
        switch question {
        case .token: return .done(act: act, token: try await session.accessToken())
        case .request: return .done(act: act, recovered: try await begun?.value["recovered"])
        case .renew(let token): try await session.renew(token)
        case .register: try await listener.onDeviceMissing()
        case .disconnect(let socket): await sockets[socket]?.disconnect()
        case .handle(let event): try await listener.onEvent(event)
        }
        return .done(act: act)
    }

    private static func isOfSession(_ question: ConnectionQuestion) -> Bool {
        switch question {
        case .token, .renew, .register: true
        case .request, .disconnect, .handle: false
        }
    }

    private func open(_ number: Int, _ token: String) {
        let socket: any Socket
        do {
            socket = try server.sockets.open(StompSocket.request(to: server))
        } catch {
            // The platform takes no such address.
            let close = ConnectionInput.Close(
                socket: number, code: 1002, reason: "", retryAfterMs: 0, failure: failure(of: error))
            return take(.closed(close))
        }
        let greeting = StompGreeting(
            host: URL(string: server.prefix)?.host ?? "",
            accessToken: token,
            language: server.language,
            heartBeatMs: heartBeatMs
        )
        let opened = StompSocket(
            socket,
            greeting,
            answerWithinMs: Self.answerWithinMs,
            onConnected: { [weak self] headers in
                let serverMs = headers["server-time"].flatMap(wholeNumber) ?? 0
                self?.take(.connected(socket: number, device: headers["device"], serverMs: serverMs))
            },
            onMessage: { [weak self] frame in try self?.onMessage(number, frame) }
        )
        sockets[number] = opened
        Task {
            guard let close = try? await opened.closed.value else { return }
            take(
                .closed(
                    ConnectionInput.Close(
                        socket: number,
                        code: close.code,
                        reason: close.reason,
                        retryAfterMs: close.retryAfterMs,
                        failure: close.error.map(failure)
                    )
                )
            )
            sockets[number] = nil
        }
    }

    /// An error that it throws ends the connection.
    private func onMessage(_ socket: Int, _ frame: StompFrame) throws {
        guard let event = JSONValue(frame.body) else { throw answerInvalid() }
        let subscription = frame.headers["subscription"] ?? ""
        take(.message(.init(socket: socket, subscription: subscription, ack: frame.headers["ack"], event: event)))
    }

    private func tellTopic(_ watch: String, _ event: JSONValue) {
        do {
            guard let members = event.object else { throw answerInvalid() }
            try topics[watch]?(members)
        } catch {
            listener.onTrouble(error)
        }
    }

    private func settle(_ command: Int, _ watch: String?, _ failure: ConnectionFailure?) {
        guard let answer = commands.removeValue(forKey: command) else { return }
        guard let failure else { return answer.complete(watch) }
        topics[Self.watchId(command)] = nil
        answer.fail(failure.cause ?? error(in: failure))
    }

    private func wakeInTime(_ nowMs: Int) {
        let atMs = connection.nextDeadlineMs
        if atMs == timerAtMs { return }
        timer?.cancel()
        timerAtMs = atMs
        timer = atMs.map { atMs in
            Task { [weak self] in
                guard await isSlept(atMs - nowMs), let self else { return }
                timerAtMs = nil
                take(.time)
            }
        }
    }

    private static func watchId(_ command: Int) -> String { "watch-\(command)" }

    private func failure(of error: any Error) -> ConnectionFailure {
        let known = error as? CallsignError
        return ConnectionFailure(code: known?.code ?? "INTERNAL", message: known?.message ?? "\(error)", cause: error)
    }

    private func error(in failure: ConnectionFailure) -> CallsignError {
        CallsignError(failure.code, failure.message ?? failure.code, cause: failure.cause)
    }

    private static let answerWithinMs = 10_000
}
