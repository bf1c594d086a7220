// How an app starts and ends: its session, and the parts of one signed-in user.
import CallsignVerify

/// The parts of one signed-in user.
struct Active: Sendable {
    let device: RegisteredDevice
    let connection: Connection
    let calls: Calls
    let account: Account
    let contacts: Contacts
    let names: Names
    let devices: Devices
    let sessions: Sessions
    let userTokens: UserTokens

    /// Whether the log holds this device's key.
    let checking: Task<Void, Never>
}

@CallsignActor final class Reading {
    var told: User?
}

/// A sign-in that has waited, for all who ask at the same time.
@CallsignActor final class FinishingSignIn {
    let answer = Deferred<User>()
    var task: Task<Void, Never>?
}

/// Ids of events.
struct PushesSeen {
    private var all: Set<String> = []
    private var oldestFirst: [String] = []

    /// Whether it was there before.
    mutating func insert(_ eventId: String) -> Bool {
        if !all.insert(eventId).inserted { return true }
        oldestFirst.append(eventId)
        if oldestFirst.count > 500 { all.remove(oldestFirst.removeFirst()) }
        return false
    }
}

extension Callsign {
    /// A push that is not sealed is taken, too: it was on its way when the server got the key.
    func opened(_ members: [String: String], _ device: RegisteredDevice) async throws -> [String: String]? {
        guard let sealed = members["sealed"] else { return members }
        guard let pushKey = try await pushKeyOf(storage, userId: device.userId) else { return nil }
        return openPush(pushKey: pushKey, deviceId: device.deviceId, sealed)
    }

    func show(_ members: [String: String], _ begun: Active) -> PushAction {
        if isOwnStart(members["type"], members["sessionId"]) { return .nothing }
        let isSeen = pushesSeen.insert(members["eventId"] ?? "")
        let serverNowMs = server.isTimeKnown ? server.serverTimeMs() : nil
        let action = judgePush(members, deviceId: begun.device.deviceId, serverNowMs: serverNowMs, isSeen: isSeen)
        switch action {
        case .ringing: invitationIn(members).map(begun.calls.onInvitation)
        case .stopRinging(let callId, _, let reason, _): begun.calls.onCancelled(callId, endingOf(reason.rawValue))
        default: break
        }
        return action
    }

    nonisolated func assertActive() throws -> Active {
        guard let active = active.with({ $0 }) else { throw CallsignApp.signedOut() }
        return active
    }

    func opened() async throws -> Session { try await uncancelled { [self] in try await openSession() } }

    func openSession() async throws -> Session { try await beginning.one { try await self.openSessionNow() } }

    func openSessionNow() async throws -> Session {
        if let session { return session }
        let opened = try await Session.open(server, storage)
        session = opened
        let stepUp = StepUp(opened, keysOf, passkeys, proofNeeded)
        self.stepUp = stepUp
        opened.proveBy(stepUp)
        let ended = opened.ended
        Task { [weak self] in
            for await error in ended {
                guard let self else { return }
                // After a start that is under way.
                await beginning.one { await self.end(endingBy(error.members.text("reason"))) }
                tell(.signedOut(error))
            }
        }
        return opened
    }

    /// Nil without a session in the storage.
    func resumed() async throws -> Active? {
        try await beginning.one {
            let session = try await self.openSessionNow()
            if session.userId == nil { return nil }
            return if let active = self.active.with({ $0 }) { active } else { try await self.beginNow(session) }
        }
    }

    func finishIn(_ closed: Deferred<Void>) -> FinishingSignIn {
        let begun = FinishingSignIn()
        finishing = begun
        begun.task = Task {
            do {
                let session = try await openSession()
                let (user, address) = try await codeSignIn(session).finish()
                begun.answer.complete(try await welcomed(session, user, address, closed))
            } catch {
                begun.answer.fail(error)
            }
            if finishing === begun { finishing = nil }
        }
        return begun
    }

    /// That the user has signed in here is no news to them.
    func isOwnStart(_ type: String?, _ sessionId: String?) -> Bool {
        type == "session_started" && sessionId != nil && sessionId == session?.id
    }

    func codeSignIn(_ session: Session) -> CodeSignIn { CodeSignIn(session, storage, keysOf) }

    func goOn(_ session: Session, _ address: String, _ closed: Deferred<Void>) async throws -> User {
        try await uncancelled { [self] in
            let last = try await storage.lastSignIn()
            guard let last, last.userId == session.userId, isSame(last.address, normalized(address)) else {
                let sentence = "Another user is signed in. Sign out first, or resume."
                throw CallsignError(CallsignError.LocalCode.alreadySignedIn, sentence)
            }
            if !closed.isCompleted { try await begin(session) }
            return if let user = user.value { user } else { try await readUser(session) }
        }
    }

    func welcomed(
        _ session: Session, _ user: User, _ address: String, _ closed: Deferred<Void>
    ) async throws -> User {
        try await uncancelled { [self] in try await welcome(session, user, address, closed) }
    }

    func welcome(
        _ session: Session, _ newest: User, _ address: String, _ closed: Deferred<Void>
    ) async throws -> User {
        try await storage.keepLastSignIn(newest.userId, address)
        if closed.isCompleted { return newest }
        user.set(newest)
        try await begin(session, isNew: true)
        // Its device may be one that the user's list names.
        if newest.restriction != nil { await reporting(report) { try await self.showUser(session) } }
        return user.value ?? newest
    }

    /// Once for all who ask at the same time.
    func begin(_ session: Session, isNew: Bool = false) async throws {
        try await beginning.one {
            if self.active.with({ $0 }) == nil { _ = try await self.beginNow(session, isNew: isNew) }
        }
    }

    func beginNow(_ session: Session, isNew: Bool = false) async throws -> Active {
        let registration = DeviceRegistration(server, session, storage, keysOf, sealedPushes: sealedPushes)
        let device = device
        let known = try await registration.known()
        // A device that is known can ring without a network, or an answer; a new session has no device before.
        let registering = known.map { _ in
            Task { await reporting(report) { _ = try await registration.register(device) } }
        }
        if isNew { await registering?.value }
        let registered = if let known { known } else { try await registration.register(device) }
        let begun = try await activate(session, registration, registered)
        active.with { $0 = begun }
        begun.connection.connect()
        return begun
    }

    func activate(
        _ session: Session, _ registration: DeviceRegistration, _ registered: RegisteredDevice
    ) async throws -> Active {
        let keyLog = try KeyLog(
            session: session,
            storage: storage,
            device: registered,
            keys: pins,
            url: server.prefix,
            transport: SessionTransport(server, session),
            onReset: onReset,
            completeness: completeness,
            maxIndexAgeMs: maxIndexAgeMs
        ) { [weak self] in self?.tell(.keysChanged($0)) }
        // Each connection reads it again, and says why where it can't.
        let kept = (try? await readKept(storage, userId: registered.userId)) ?? Kept()
        let listener = AppListener(self, session, registration)
        let connection = Connection(server, session, listener)
        listener.connection = connection
        let names = Names { [weak self] in self?.active.with { $0 }?.calls.onNames() }
        let calls = Calls(
            server: server,
            session: session,
            connection: connection,
            exchange: KeyExchange(keyLog, session, nowMs: systemTimeMs),
            names: names,
            registered: registered,
            storage: storage,
            kept: kept,
            onResumed: { [weak self] in self?.tell(.resumed($0)) },
            onChanged: { [weak self] in self?.showCalls() },
            onLeftOut: { [weak self] userId, deviceId in
                self?.tell(.keysChanged(.leftOut(userId: userId, deviceId: deviceId)))
            }
        )
        return Active(
            device: registered,
            connection: connection,
            calls: calls,
            account: Account(session),
            contacts: Contacts(session, keyLog, names),
            names: names,
            devices: Devices(session, keyLog, OwnDeviceList(server, session, keyLog, registered)),
            sessions: Sessions(session, registered),
            userTokens: UserTokens(nowMs: server.nowMs) { audience in
                try await session.ask("POST", "user/tokens", body: bodyOf(["audience": audience]))
            },
            checking: Task { await reporting(report) { _ = try await keyLog.checkOwn() } }
        )
    }

    func showCalls() { calls.set(active.with { $0 }?.calls.all ?? []) }

    func showUser(_ session: Session) async throws {
        let newest = Reading()
        reading = newest
        let read = try await readUser(session)
        try Task.checkCancellation()
        // A newer one is under way, or the user has signed out.
        if reading === newest { user.set(newest.told ?? read) }
    }

    /// As a message of the queue tells it.
    func onProfile(_ told: User) {
        user.set(told)
        reading?.told = told
    }

    func readUser(_ session: Session) async throws -> User { try userOf(await session.ask("GET", "user")) }

    func end(_ ending: CallEnding = .left) async {
        guard let ended = active.with({ $0 }) else { return }
        active.with { $0 = nil }
        reading = nil
        user.set(nil)
        badge.set(nil)
        ended.calls.closeAll(ending)
        // The listener has no calls any more to tell it.
        ended.calls.onDisconnected()
        calls.set([])
        ended.checking.cancel()
        try? await ended.connection.disconnect()
        ended.connection.abort()
    }

    func tell(_ event: CallsignEvent) { news.tell(event) }

    func report(_ error: any Error) {
        let isExpected = error.hasCode(CallsignError.LocalCode.signedOut, CallsignError.LocalCode.offline)
        if isExpected || error is CancellationError { return }
        tell(.failed(asCallsign(error)))
    }
}

/// How calls end here with the session: people whose account was suspended are to know.
func endingBy(_ reason: String?) -> CallEnding { reason == "account_suspended" ? .suspended : .left }

/// In place of an address.
let byPasskey = "passkey"
