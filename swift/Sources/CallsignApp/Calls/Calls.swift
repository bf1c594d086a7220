// The calls of this device: those that ring, and the one that it is in. `DeviceCalls.swift` decides; this carries out its acts
// one after the other, and gives it what comes of them.
import CallsignCrypto
import CallsignVerify

/// Its work outlasts the session: what was decided is carried out.
@CallsignActor final class Calls: CallShell {
    nonisolated let userId: UInt64
    private let server: Server
    private let session: Session
    private let connection: Connection
    private let exchange: KeyExchange
    private nonisolated let names: Names
    private let storage: any AppStorage
    private let onResumed: @CallsignActor (Call) -> Void
    private let onChanged: @CallsignActor () -> Void
    private let onLeftOut: OnLeftOut
    private var device: Device

    /// Those that ring, and the one that this device is in.
    private(set) var all: [Call] = []
    private let keys = KeyOctets()
    private var nonces: [Int: [UInt8]] = [:]
    private var commands: [Int: Deferred<Call?>] = [:]
    private var commandCount = 0
    private var unwatches: [String: @CallsignActor () -> Void] = [:]

    /// They came while another one was carried out.
    private var inputs: [CallInput] = []
    private var isBusy = false
    private var timer: Task<Void, Never>?

    /// The last value is the one that stays.
    private var keeping: Task<Void, Never>?

    /// `kept` is what `readKept` gives.
    init(
        server: Server,
        session: Session,
        connection: Connection,
        exchange: KeyExchange,
        names: Names,
        registered: RegisteredDevice,
        storage: any AppStorage,
        kept: Kept,
        onResumed: @escaping @CallsignActor (Call) -> Void,
        onChanged: @escaping @CallsignActor () -> Void,
        onLeftOut: @escaping OnLeftOut
    ) {
        userId = registered.userId
        self.server = server
        self.session = session
        self.connection = connection
        self.exchange = exchange
        self.names = names
        self.storage = storage
        self.onResumed = onResumed
        self.onChanged = onChanged
        self.onLeftOut = onLeftOut
        device = Device(userId: registered.userId, deviceId: registered.deviceId)
        take(.restarted(kept))
    }

    /// Throws unless every device of every callee verifies.
    func start(_ people: [UInt64], _ options: StartOptions, _ without: Without) async throws -> Call {
        try await leaveOut(people, without) { [self] userIds in
            let call = try await ask { .startCall(command: $0, callId: "\(randomId())", userIds: userIds, options: options) }
            return try present(call)
        }
    }

    func leaveOut<Value: Sendable>(
        _ people: [UInt64], _ without: Without, _ ask: @escaping @CallsignActor ([UInt64]) async throws -> Value
    ) async throws -> Value {
        without == .leaveOut ? try await leavingOut(people, onLeftOut, ask) : try await ask(people)
    }

    /// Brings the user's call to this device: from another device, or one that they had left or missed.
    func join(_ callId: String) async throws -> Call {
        try present(await ask { .ofCall(command: $0, callId: callId, .join) })
    }

    func ask(_ inputOf: @escaping @CallsignActor (_ command: Int) -> CallInput) async throws -> Call? {
        try await uncancelled { [self] in
            commandCount += 1
            let answer = Deferred<Call?>()
            commands[commandCount] = answer
            take(inputOf(commandCount))
            return try await answer.value
        }
    }

    func keysOf(_ call: DeviceCall) -> [EpochKey] {
        call.phase.isEnded ? [] : call.key.held.compactMap { keys.epochKey(call.callId, $0) }
    }

    nonisolated func named(_ person: Person) -> Person { names.of(person) }

    /// People of calls may have other names now.
    func onNames() {
        for call in all { call.onNames() }
    }

    /// After each connection: what rings, and the call that this device was in.
    func onConnected() async throws {
        let kept = try await newestKept()
        guard let connectedAtMs = connection.connectedAtMs else { throw offline() }
        _ = try await ask { .connected(command: $0, connection: connectedAtMs, kept: kept) }
    }

    /// A call may be left while the storage is read.
    private func newestKept() async throws -> Kept {
        while true {
            let before = keeping
            await before?.value
            let kept = try await readKept(storage, userId: userId)
            if keeping == before { return kept }
        }
    }

    func onDisconnected() {
        if device.connection != nil { take(.disconnected) }
    }

    func onMessage(_ event: [String: JSONValue]) async throws {
        do {
            _ = try await ask { .queue(command: $0, event: event) }
        } catch let error as CallsignError where error.code == "CALL_ENDED" {
            // Nothing is left to do.
        }
    }

    func onInvitation(_ invitation: Invitation) { take(.invited(invitation)) }

    /// Told by push.
    func onCancelled(_ callId: String, _ reason: CallEnding) { take(.cancelled(callId: callId, reason: reason)) }

    /// The session has ended, the app is closed, or another installation goes on: the next start asks the server.
    func closeAll(_ reason: CallEnding) { take(.close(reason)) }

    private func present(_ call: Call?) throws -> Call {
        guard let call else { throw answerInvalid() }
        return call
    }

    /// One input at a time, each with all its acts.
    private func take(_ input: CallInput) {
        inputs.append(input)
        if isBusy { return }
        isBusy = true
        while !inputs.isEmpty { step(inputs.removeFirst()) }
        isBusy = false
        wakeInTime()
    }

    private func step(_ input: CallInput) {
        let nowMs = monotonicNowMs()
        let clock = ServerClock(aheadMs: server.serverTimeMs() - nowMs, isKnown: server.isTimeKnown)
        let isOther = abs(clock.aheadMs - device.clock.aheadMs) > Self.clockToleranceMs
        if clock.isKnown != device.clock.isKnown || isOther { device = decideSafely(.setClock(clock), nowMs).device }
        let before = device
        let decision = decideSafely(input, nowMs)
        device = decision.device
        let shown = device.calls.map { call in (call, all.first { $0.callId == call.callId } ?? Call(self, call)) }
        all = shown.filter { !$0.0.phase.isEnded }.map { $0.1 }
        // An app that draws at the end of a call finds it gone from `calls`.
        if device.calls != before.calls { onChanged() }
        for (decided, call) in shown { call.become(decided) }
        for act in decision.acts { carryOut(act, shown.map { $0.1 }) }
    }

    /// A server that tells nonsense fails the request or the command that it answers, and nothing else.
    private func decideSafely(_ input: CallInput, _ nowMs: Int) -> CallDecision {
        do {
            return try decide(device, input, nowMs: nowMs)
        } catch {
            let failure = answerInvalid(error)
            if case .done(let done) = input {
                let failed = try? decide(device, .failed(act: done.act, failure: failure), nowMs: nowMs)
                return failed ?? CallDecision(device: device, acts: [])
            }
            if case .topic(let callId, _) = input {
                return CallDecision(device: device, acts: [.emit(callId: callId, .failed(failure))])
            }
            let settled = input.command.map { CallAct.settle(command: $0, callId: nil, error: failure) }
            return CallDecision(device: device, acts: settled.map { [$0] } ?? [])
        }
    }

    private func carryOut(_ act: CallAct, _ shown: [Call]) {
        switch act {
        case .request(let request): answer(request.act) { try await self.requested(request) }
        case .send(let destination, let body):
            // That it rings does not hang on it.
            Task { try? await connection.send(destination, body) }
        case .watch(let act, let callId): answer(act) { try await self.watched(act, callId) }
        case .unwatch(let callId): unwatches.removeValue(forKey: callId)?()
        case .open(let open): answer(open.act) { try await self.opened(open) }
        case .make(let key): keys.make(key)
        case .seal(let seal):
            let key = keys.copyOf(seal.key)
            answer(seal.act) { try await self.sealed(seal, key) }
        case .wipe(let wiped): for key in wiped { keys.wipe(key) }
        case .settle(let command, let callId, let error):
            let waiting = commands.removeValue(forKey: command)
            if let error { waiting?.fail(error) } else { waiting?.complete(shown.first { $0.callId == callId }) }
        case .keep(let kept): keep(kept)
        case .emit(let callId, let news): shown.first { $0.callId == callId }.map { tell($0, news) }
        }
    }

    private func answer(_ act: Int, _ carryOut: @escaping @CallsignActor () async throws -> CallInput.Done) {
        Task {
            do {
                take(.done(try await carryOut()))
            } catch {
                take(.failed(act: act, failure: asCallsign(error)))
            }
        }
    }

    private func requested(_ request: CallAct.Request) async throws -> CallInput.Done {
        // Another user may have signed in since.
        if session.userId != userId { throw signedOut() }
        let asked = request.nonce.map { bodyOf(["nonce": encodeBase64(nonceOf($0))]) }
        let reply = try await session.request(request.method, request.path, body: asked ?? request.body)
        return CallInput.Done(act: request.act, body: reply ?? [:])
    }

    private func watched(_ act: Int, _ callId: String) async throws -> CallInput.Done {
        let unwatch = try await connection.watch("/topic/call.\(callId)") { [weak self] event in
            self?.take(.topic(callId: callId, event: event))
        }
        // The call was left and joined again while the first watch was under way.
        unwatches.updateValue(unwatch, forKey: callId)?()
        return CallInput.Done(act: act)
    }

    private func opened(_ open: CallAct.Open) async throws -> CallInput.Done {
        let binding = bindingOf(open.use, open.nonce.map(nonceOf))
        let opened = try await exchange.open(open.text, open.from, binding, open.hints)
        let key = try keys.put(open.key, opened.key, binding, keyMembers: opened.keyMembers)
        return CallInput.Done(
            act: open.act,
            key: key,
            from: opened.from,
            set: KeySet(keyMembers: opened.keyMembers, members: opened.members),
            unlisted: opened.unlisted,
            sealedAgoMs: systemTimeMs() - opened.sealedAtMs
        )
    }

    private func sealed(_ seal: CallAct.Seal, _ key: [UInt8]?) async throws -> CallInput.Done {
        guard let key else { throw CallsignError(CallsignError.LocalCode.keyMissing, "The key to seal was wiped.") }
        let binding = bindingOf(seal.use, try seal.nonce.map { try decodeBase64($0) })
        let sealed: SealedKeys
        switch seal.receivers {
        case .users(let userIds): sealed = try await exchange.sealForUsers(key, userIds, binding)
        case .participants(let participants, let userIds):
            sealed = try await exchange.sealForCall(key, participants, userIds, binding)
        case .members(let participants, let keyMembers):
            sealed = try await exchange.sealAgain(key, keyMembers, participants, binding)
        case .asker(let ask, let keyMembers):
            return CallInput.Done(act: seal.act, text: try await exchange.sealForDevice(key, keyMembers, ask, binding))
        }
        try keys.bind(key, binding, keyMembers: sealed.keyMembers)
        let set = KeySet(keyMembers: sealed.keyMembers, members: sealed.members)
        return CallInput.Done(act: seal.act, texts: sealed.texts, set: set, without: sealed.without)
    }

    private func bindingOf(_ use: Use, _ nonce: [UInt8]?) -> KeyBinding {
        KeyBinding(callId: use.callId, epoch: use.epoch, nonce: nonce)
    }

    /// Random octets that stay the same for as long as this app runs.
    private func nonceOf(_ number: Int) -> [UInt8] {
        if let made = nonces[number] { return made }
        let nonce = randomOctets(Self.nonceOctets)
        nonces[number] = nonce
        return nonce
    }

    private func keep(_ kept: Kept) {
        let before = keeping
        let members = membersOf(kept)
        keeping = Task {
            await before?.value
            do {
                try await storage.write(keptKey(userId), members.isEmpty ? nil : members)
            } catch {
                // The next start does not know of the call, or finds that it has ended.
                all.first { $0.callId == kept.callId }?.tell(.failed(asCallsign(error)))
            }
        }
    }

    private func tell(_ call: Call, _ news: News) {
        switch news {
        // It is among the calls, which `ringing` looks through.
        case .ringing: break
        case .resumed: onResumed(call)
        case .state(let state): call.tell(.stateChanged(state))
        case .key(let held):
            guard let key = keys.epochKey(call.callId, held) else { break }
            call.tell(.keyChanged(epoch: key.epoch, fingerprint: key.fingerprint, fromUserId: held.fromUserId))
        case .sending(let held): call.tell(.sendingChanged(epoch: held.epoch))
        case .participant(let participant): call.tell(.participantChanged(named(participant)))
        case .media(let gateway): call.tell(.mediaReady(gateway))
        case .keyAsked(let ask): call.tell(.keyAsked(ask))
        case .failed(let failure): call.tell(.failed(failure))
        }
    }

    private func wakeInTime() {
        timer?.cancel()
        timer = nil
        guard let atMs = nextDeadlineMs(device) else { return }
        timer = Task { [weak self] in
            // A server names times that no timer reaches: it looks again then.
            let waitMs = min(max(atMs - monotonicNowMs(), 0), Self.timerMsMax)
            guard (try? await Task.sleep(nanoseconds: UInt64(waitMs) * 1_000_000)) != nil else { return }
            self?.take(.time)
        }
    }

    private static let nonceOctets = 16
    private static let timerMsMax = 86_400_000

    /// The two clocks of a device run apart by less.
    private static let clockToleranceMs = 100
}
