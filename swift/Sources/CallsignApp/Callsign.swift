// One user of a calling app on one device: sign-in, contacts, devices and calls.
import CallsignVerify

/// News beside those of the calls.
public enum CallsignEvent: Sendable {
    /// After each connection: the user, calls and devices are as the server has them now.
    case ready

    /// A call of before a restart goes on.
    case resumed(Call)

    /// Show it: a contact has new devices, keys were refused, or a call goes on without someone.
    case keysChanged(KeyEvent)

    /// A message of the server, such as `friend_request`, after the SDK has done its part: docs/reference/operations.md has the types.
    case message(type: String, members: [String: JSONValue])

    /// The server has ended the session.
    case signedOut(CallsignError)

    /// Something that goes on by itself has failed.
    case failed(CallsignError)

    /// So many events were dropped here, because the reader was too slow.
    case missed(count: Int)
}

/// One for each storage. What it shows can be read from any thread. An operation goes on to its end where its caller is
/// cancelled.
@CallsignActor public final class Callsign {
    nonisolated let server: Server
    nonisolated let storage: any AppStorage
    nonisolated let device: DeviceDetails
    let pins: LogKeys
    let keysOf: DeviceKeysOf
    let onReset: OnReset
    let passkeys: (any PasskeyAuthenticator)?
    let sealedPushes: Bool?
    let completeness: CompletenessDemand?
    let maxIndexAgeMs: Int?

    let beginning = Turns()
    var session: Session?
    var stepUp: StepUp?
    nonisolated let active = Locked<Active?>(nil)

    /// The newest reading of the user, and what the queue tells meanwhile.
    var reading: Reading?

    /// Completed when the app is closed, and then replaced: a sign-in that was under way does not connect.
    var closing = Deferred<Void>()
    var finishing: FinishingSignIn?
    nonisolated let failureCount = Locked(0)

    /// Ids of events.
    var pushesSeen = PushesSeen()
    nonisolated let news = EventStream<CallsignEvent>(1_024) { .missed(count: $0) }

    /// Nil until it was read from the server.
    public nonisolated let user = Watched<User?>(nil)

    /// For the badge of the app; nil until the server has said it.
    public nonisolated let badge = Watched<Badge?>(nil)
    public nonisolated let connection = Watched(ConnectionState.off)

    /// Those that ring, and the one that this device is in.
    public nonisolated let calls = Watched<[Call]>([])

    /// The server refuses what the app has asked for until the user proves who they are: ask them, until it is nil again. Where
    /// nobody reads it, the operation throws `STEP_UP_REQUIRED`.
    public nonisolated let proofNeeded = Watched<ProofQuestion?>(nil)

    /// - Parameters:
    ///   - pins: the keys of the server's log, or its policy, built into the app.
    ///   - keysOf: the device's keys, where they are kept elsewhere than in `storage`, such as in the Secure Enclave.
    ///   - device: facts about the device and its push tokens, sent at each start.
    ///   - onReset: whether new keys of a contact that nothing known vouches for are asked about; a bot goes on.
    ///   - passkeys: what makes passkeys and signs by them.
    ///   - sealedPushes: with true, pushes are sealed for this device, and neither Apple nor Google can read them; false takes
    ///     that back, and nil changes nothing.
    ///   - completeness: whether the log's index has to prove keys the newest ones; unless given, where the policy in `pins`
    ///     names the index, or it has proved some before. Keys without that proof are refused with `KEYS_REFUSED`, whose `check`
    ///     is `completeness`.
    ///   - maxIndexAgeMs: how many milliseconds ago the policy's quorum may have seen the index's newest leaf; unless given, a
    ///     day.
    public nonisolated init(
        server: Server,
        pins: LogKeys,
        storage: any AppStorage,
        keysOf: DeviceKeysOf? = nil,
        device: DeviceDetails = DeviceDetails(),
        onReset: OnReset = .ask,
        passkeys: (any PasskeyAuthenticator)? = nil,
        sealedPushes: Bool? = nil,
        completeness: CompletenessDemand? = nil,
        maxIndexAgeMs: Int? = nil
    ) {
        self.server = server
        self.pins = pins
        self.storage = storage
        self.keysOf = keysOf ?? softwareKeys(storage)
        self.device = device
        self.onReset = onReset
        self.passkeys = passkeys
        self.sealedPushes = sealedPushes
        self.completeness = completeness
        self.maxIndexAgeMs = maxIndexAgeMs
    }

    deinit {
        // An app that was let go of without `close` hears nothing more.
        guard let left = active.with({ $0 }) else { return }
        left.checking.cancel()
        Task { @CallsignActor in left.connection.abort() }
    }

    /// At a server such as `https://call.example.org`, with the system's own requests and sockets. Throws `MALFORMED` for what is no
    /// address or no pin.
    ///
    /// - Parameters:
    ///   - clientVersion: `X-Client-Version`, such as `ios/1.4.2 (214)`.
    ///   - tlsPins: as of `Server`. Give two, one of them a spare.
    ///   - language: the tag of the user's language, such as `vi-VN`, in which errors have their `sentence`.
    public nonisolated convenience init(
        server: String,
        pins: LogKeys,
        storage: any AppStorage,
        keysOf: DeviceKeysOf? = nil,
        device: DeviceDetails = DeviceDetails(),
        clientVersion: String? = nil,
        onReset: OnReset = .ask,
        passkeys: (any PasskeyAuthenticator)? = nil,
        tlsPins: [String] = [],
        language: String = preferredLanguage(),
        sealedPushes: Bool? = nil,
        completeness: CompletenessDemand? = nil,
        maxIndexAgeMs: Int? = nil
    ) throws {
        self.init(
            server: try Server(server, clientVersion: clientVersion, tlsPins: tlsPins, language: language),
            pins: pins,
            storage: storage,
            keysOf: keysOf,
            device: device,
            onReset: onReset,
            passkeys: passkeys,
            sealedPushes: sealedPushes,
            completeness: completeness,
            maxIndexAgeMs: maxIndexAgeMs
        )
    }

    /// Incoming calls, each once. One that rings already comes at once.
    public nonisolated var ringing: AsyncStream<Call> {
        let values = calls.values
        return AsyncStream { reader in
            let reading = Task {
                var told: [Call] = []
                for await all in values {
                    told.removeAll { one in !all.contains { $0 === one } }
                    for call in all where call.isIncoming && call.state.value == .ringing {
                        if told.contains(where: { $0 === call }) { continue }
                        told.append(call)
                        reader.yield(call)
                    }
                }
                reader.finish()
            }
            reader.onTermination = { _ in reading.cancel() }
        }
    }

    /// From now on. A reader that falls more than 1,024 behind gets one `CallsignEvent.missed` for those it missed.
    public nonisolated var events: AsyncStream<CallsignEvent> { news.events }

    /// Attempts to connect that failed in a row: after a few, say that there is no connection.
    public nonisolated var connectionFailures: Int { failureCount.with { $0 } }

    /// Why this device may do little yet: the user has to approve it, and `Devices.listState` has the code. Nil for all others.
    public nonisolated var restriction: String? { user.value?.restriction }

    public nonisolated var userId: UInt64? { active.with { $0?.device.userId } }
    public nonisolated var deviceId: UInt64? { active.with { $0?.device.deviceId } }

    /// Throws `SIGNED_OUT`.
    public nonisolated var account: Account { get throws { try assertActive().account } }

    /// Throws `SIGNED_OUT`.
    public nonisolated var contacts: Contacts { get throws { try assertActive().contacts } }

    /// Throws `SIGNED_OUT`.
    public nonisolated var devices: Devices { get throws { try assertActive().devices } }

    /// Throws `SIGNED_OUT`.
    public nonisolated var sessions: Sessions { get throws { try assertActive().sessions } }

    /// Goes on with the session in the storage. Returns the user's id, nil without one. Works without a network, too, once this
    /// device is registered.
    @discardableResult public func resume() async throws -> UInt64? {
        try await uncancelled { [self] in try await resumed()?.device.userId }
    }

    /// Signs in by a code to an email address or phone number, makes this device's keys and registers them. `confirm` asks the
    /// user for the code, as often as it may be tried. Goes on with the session in the storage where it is of the same address;
    /// throws `ALREADY_SIGNED_IN` where it is of another. `displayName` counts for a newcomer, `country` for a phone number
    /// without calling code, `attestation` is what the operator's check asks of the app. Throws `SIGN_IN_WAITING` where the
    /// account has other devices, which are asked: go on with `finishSignIn`. With `reclaim` the address becomes the next one of
    /// this device's account, which has lost its last.
    @discardableResult public func signIn(
        _ address: String,
        displayName: String? = nil,
        country: String? = nil,
        reclaim: Bool = false,
        attestation: String? = nil,
        confirm: @escaping CodeConfirmation
    ) async throws -> User {
        let closed = closing
        let session = try await opened()
        if session.userId != nil { return try await goOn(session, address, closed) }
        let options = SignInOptions(
            displayName: displayName, country: country, attestation: attestation, reclaim: reclaim)
        let user = try await codeSignIn(session).signIn(address, options, confirm)
        return try await welcomed(session, user, address, closed)
    }

    /// A sign-in of this app that waits for its owner, also one of before a restart.
    public func waitingSignIn() async throws -> WaitingSignIn? {
        try await uncancelled { [self] in try await codeSignIn(openSession()).waiting() }
    }

    /// Waits, as long as it takes, until a device of the user approves the sign-in or its time has passed. Throws
    /// `SIGN_IN_REFUSED`, `SIGN_IN_GONE` where none waits any more, and `SIGNED_OUT` when the app is closed: the sign-in waits
    /// on.
    @discardableResult public func finishSignIn() async throws -> User {
        // Once for all who ask at the same time.
        try await (finishing ?? finishIn(closing)).answer.valueUnlessCancelled
    }

    /// Signs in by what an identity provider has signed, such as Apple's or Google's ID token.
    @discardableResult public func signInByProvider(
        _ provider: String, idToken: String, nonce: String? = nil, displayName: String? = nil
    ) async throws -> User {
        try await uncancelled { [self] in
            let closed = closing
            let session = try await openSession()
            if session.userId != nil { return try await goOn(session, provider, closed) }
            let user = try await session.verifyProvider(provider, idToken: idToken, nonce: nonce, displayName: displayName)
            return try await welcome(session, user, provider, closed)
        }
    }

    /// Signs in by a passkey, which waits for no other device. Throws `PASSKEY_CANCELLED` where the person gives none.
    @discardableResult public func signInByPasskey() async throws -> User {
        let closed = closing
        let session = try await opened()
        if session.userId != nil { return try await goOn(session, byPasskey, closed) }
        let present = try assertPresent(passkeys)
        let options = JSONValue.object(try await uncancelled { try await session.passkeyOptions() }).text
        let credential = try await credentialBy { try await present.get(options) }
        let user = try await uncancelled { try await session.verifyPasskey(credential) }
        return try await welcomed(session, user, byPasskey, closed)
    }

    /// Signs in by a token that the app's own backend got from the server: each is good once, for a minute. Throws
    /// `ALREADY_SIGNED_IN` where there is a session, which `resume` goes on with. May wait as `signIn` does.
    @discardableResult public func signInByToken(_ token: String) async throws -> User {
        let closed = closing
        let session = try await opened()
        if session.userId != nil { return try await goOn(session, token, closed) }
        let user = try await codeSignIn(session).signInByToken(token)
        return try await welcomed(session, user, token, closed)
    }

    /// Makes a passkey of this device, or of the person's password manager, a login method; `label` is what they call it.
    @discardableResult public func addPasskey(label: String? = nil) async throws -> LoginMethod {
        let present = try assertPresent(passkeys)
        let session = try await opened()
        let asked = try await session.ask("POST", "user/passkeys/options").member("options")
        let options = JSONValue.object(asked).text
        let credential = try await credentialBy { try await present.create(options) }
        let method = bodyOf(["label": label]).merging(["credential": .object(credential)]) { $1 }
        return try await uncancelled { try loginMethodOf(await session.ask("POST", "user/passkeys", body: method)) }
    }

    /// Ends the session on the server. Keys stay: the next sign-in of this user is the same device.
    public func signOut(allDevices: Bool = false) async throws {
        try await uncancelled { [self] in
            let session = try await openSession()
            if session.userId != nil { try await session.logout(allDevices: allDevices) }
            await end()
        }
    }

    /// Calls contacts. Throws, and nothing rings, unless all their devices verify. `roomId` is one that the app has made.
    public func call(
        _ userIds: [UInt64], isVideo: Bool = false, roomId: Int? = nil, without: Without = .refuse
    ) async throws -> Call {
        let calls = try assertActive().calls
        return try await uncancelled { try await calls.start(userIds, StartOptions(isVideo: isVideo, roomId: roomId), without) }
    }

    public func call(_ userId: UInt64, isVideo: Bool = false) async throws -> Call { try await call([userId], isVideo: isVideo) }

    /// Brings a call of the user to this device: from another device, or one that they had left or missed.
    public func join(_ callId: String) async throws -> Call { try await assertActive().calls.join(callId) }

    /// A JWT that shows a service of the operator who the user is, good for a minute at least (docs/build/backend.md). Throws
    /// `AUDIENCE_UNKNOWN` for a service that the operator has not listed.
    public func tokenFor(_ audience: String) async throws -> String {
        let tokens = try assertActive().userTokens
        return try await uncancelled { try await tokens.token(for: audience) }
    }

    /// Any operation of docs/reference/operations.md, such as `GET` and `call/history`, also before this device is registered.
    @discardableResult public func request(
        _ method: String, _ operation: String, body: [String: JSONValue]? = nil
    ) async throws -> [String: JSONValue]? {
        try await opened().request(method, operation, body: body)
    }

    /// Ends the pause before the next attempt to connect: say it when the network is back. Also comes back from
    /// `ConnectionState.elsewhere`.
    public func connect() throws { try assertActive().connection.connect() }

    /// Disconnects, and keeps the session for the next start. Calls go on without this device.
    public func close() async {
        closing.complete(())
        closing = Deferred()
        finishing?.task?.cancel()
        finishing?.answer.fail(CallsignError(CallsignError.LocalCode.signedOut, "The app was closed while a sign-in waited."))
        finishing = nil
        // After a start that is under way.
        try? await uncancelled { [self] in await beginning.one { await self.end() } }
    }

    /// Says how to show a push: `members` are its own, without those of Apple. Does not wait for the network where this device is
    /// registered; the connection is made beside. A call that rings by it comes out of `ringing`, too.
    public func onPush(_ members: [String: String]) async throws -> PushAction {
        try await uncancelled { [self] in
            guard let begun = try await resumed() else { return .nothing }
            begun.connection.connect()
            guard let opened = try await opened(members, begun.device) else { return .nothing }
            return show(opened, begun)
        }
    }
}
