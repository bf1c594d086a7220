// A call as an app sees it: its state, its people, its key's fingerprint, and what can be done.
import CallsignVerify

/// A key of the call.
public struct EpochKey: Sendable, Equatable {
    public let epoch: Int

    /// Thirty digits: the same on all devices where key, call, epoch and the devices that it is sealed for are the same.
    public let fingerprint: String
    private let secret: Secret

    init(epoch: Int, secret: Secret, fingerprint: String) {
        self.epoch = epoch
        self.secret = secret
        self.fingerprint = fingerprint
    }

    /// A copy of its 32 octets, which are zeros once the call has ended here.
    public var key: [UInt8] { secret.copy }

    /// Nil once they were wiped: nothing is encrypted with zeros.
    var octets: [UInt8]? { secret.octets }
}

/// A device that a key was sealed for.
public struct KeyDevice: Sendable, Hashable {
    public let userId: UInt64
    public let deviceId: UInt64

    public init(userId: UInt64, deviceId: UInt64) {
        self.userId = userId
        self.deviceId = deviceId
    }
}

/// News of a call, in order. The members of `Call` have changed already.
public enum CallEvent: Sendable {
    case stateChanged(CallState)

    /// There is a key, or a newer one.
    case keyChanged(epoch: Int, fingerprint: String, fromUserId: UInt64)

    /// From now on `Call.sendingKey`, the key of this epoch, seals frames.
    case sendingChanged(epoch: Int)

    /// A person was invited, can't be reached, rings, joined, left or declined.
    case participantChanged(CallParticipant)

    /// The gateway lets this device in, also again after it has lost its rooms.
    case mediaReady(CallGateway)

    /// Show the person, who may answer by `Call.grantKey`.
    case keyAsked(KeyAsk)

    /// So many events were dropped here, because the reader was too slow. The members of `Call` are as they are now.
    case missed(count: Int)

    /// The last one.
    case ended(CallEnding)

    /// Something that the call does by itself has failed, such as a new key.
    case failed(CallsignError)
}

/// What becomes of a call to people with a device that nothing can be sealed for (`KEY_UNSUPPORTED`).
public enum Without: Sendable {
    case refuse

    /// It goes on without them, where a person is left. The app hears of each by `KeyEvent.leftOut`.
    case leaveOut
}

/// What it shows can be read from any thread. An operation goes on to its end where its caller is cancelled.
@CallsignActor public final class Call: Identifiable {
    public nonisolated let callId: String
    public nonisolated let state: Watched<CallState>
    public nonisolated let participants: Watched<[CallParticipant]>

    /// The newest key; nil before there is one, and once the call has ended.
    public nonisolated let key: Watched<EpochKey?>

    /// The one that frames are sealed with.
    public nonisolated let sendingKey: Watched<EpochKey?>
    nonisolated let forLiveKit: Watched<LiveKitCall>
    nonisolated let now: Locked<(call: DeviceCall, keys: [EpochKey])>
    nonisolated let news = EventStream<CallEvent>(256) { .missed(count: $0) }
    nonisolated let shell: any CallShell

    init(_ shell: any CallShell, _ call: DeviceCall) {
        let keys = shell.keysOf(call)
        let people = participantsOf(call, shell)
        self.shell = shell
        callId = call.callId
        now = Locked((call, keys))
        state = Watched(stateOf(call.phase))
        participants = Watched(people)
        key = Watched(keys.first)
        sendingKey = Watched(sendingKeyOf(call, keys))
        forLiveKit = Watched(liveKitOf(call, keys, people, shell.userId))
    }

    public nonisolated var id: String { callId }
    public nonisolated var isIncoming: Bool { decided.isIncoming }
    public nonisolated var isVideo: Bool { decided.isVideo }

    /// Whether it had begun when this user was invited.
    public nonisolated var isOnGoing: Bool { decided.isOnGoing }

    /// The person who has invited this user; this user for an outgoing call.
    public nonisolated var caller: Person { shell.named(decided.caller) }

    /// Whether the caller's devices and the key that they sent hold; nil while that is checked.
    public nonisolated var isVerified: Bool? { decided.isVerified }

    /// This user among the participants.
    public nonisolated var own: CallParticipant? { participants.value.first { $0.userId == shell.userId } }
    public nonisolated var hostUserId: UInt64? { decided.record?.hostUserId }
    public nonisolated var isHost: Bool { hostUserId == shell.userId }

    /// The media gateway's room.
    public nonisolated var roomId: Int? { decided.record?.roomId }

    /// The media gateway, and this device's admission.
    public nonisolated var media: CallGateway? {
        let call = decided
        guard let record = call.record else { return nil }
        if let ready = call.media, record.media.state == "pending", ready.roomId == record.roomId { return ready.gateway }
        return record.media
    }

    /// When the first callee joined, by the server's clock.
    public nonisolated var startedAtMs: Int? { decided.record?.startedAtMs }

    /// Those that open frames, newest first: the one before goes a few seconds after all have the new one.
    public nonisolated var keys: [EpochKey] { now.with { $0.keys } }

    /// The one of `key`.
    public nonisolated var fingerprint: String? { key.value?.fingerprint }

    /// Devices that the newest key was sealed for, this one among them; the fingerprint covers them. Empty without a key.
    public nonisolated var sealedFor: [KeyDevice] {
        let call = decided
        return call.phase.isEnded ? [] : (call.newestKey?.set.members ?? []).compactMap(keyDeviceOf)
    }

    /// Once the state is `ended`.
    public nonisolated var ending: CallEnding? {
        if case .ended(let reason) = decided.phase { reason } else { nil }
    }

    /// Ends with `CallEvent.ended`. A reader that falls more than 256 behind gets one `CallEvent.missed` for those it missed.
    public nonisolated var events: AsyncStream<CallEvent> { news.events }

    /// For the key provider of LiveKit's SDK, where that is the gateway: each key of each device, now and as they come and end.
    /// Ends with the call.
    public nonisolated var liveKitKeys: AsyncStream<LiveKitSlot> { slotsOf(forLiveKit) }

    /// Answers, once the key is verified and opened; the call that this device is in is left for it. Throws `KEYS_REFUSED` when
    /// the caller does not verify: it may be answered again. `CALLER_NOT_SEALER`: the key comes from another person than the
    /// caller. `INVITATION_OLD`: it was sealed more than five minutes ago; ask the user, who may answer `evenIfOld`.
    /// `OWN_DEVICE_IN_SET`: ask the user whether `members.name` is a device of theirs, and see `acceptDevice`.
    public func answer(evenIfOld: Bool = false) async throws { try await ask(.answer(evenIfOld: evenIfOld)) }

    /// The user knows this device of theirs, `<userId>_<deviceId>`, which is on no list: keys may be sealed for it too.
    public func acceptDevice(_ name: String) async throws { try await ask(.acceptDevice(name: name)) }

    /// For all devices of the user.
    public func decline(_ reason: DeclineReason = .declined) async throws { try await ask(.decline(reason)) }

    /// Ends it for all: the host, either of two, the caller while it rings. Else it throws `NOT_HOST`.
    public func end() async throws { try await ask(.end) }

    /// The call goes on without this user.
    public func leave() async throws { try await ask(.leave) }

    /// Brings contacts in, with a new key for all: it opens nothing of before.
    public func invite(_ userIds: [UInt64], without: Without = .refuse) async throws {
        try await shell.leaveOut(userIds, without) { [self] able in try await ask(.sendInvite(userIds: able)) }
    }

    /// The host's right.
    public func remove(_ userId: UInt64) async throws { try await ask(.remove(userId: userId)) }

    /// A new key for all; the host makes one by itself in time and after a person has left.
    public func renewKey() async throws { try await ask(.renew) }

    /// The present key once more for all, for a device that can't decrypt.
    public func resendKey() async throws { try await ask(.resend) }

    /// Frames are sealed with this epoch's key from now on: all other devices in the call were seen to have it, by a frame that
    /// came from each. Else it is used five seconds after it came.
    public func useKey(epoch: Int) async throws { try await ask(.useKey(epoch: epoch)) }

    /// Asks the other devices for the present key, when frames of a member can't be opened with those that are here. The call
    /// goes on meanwhile. Say by `userId` whose frames they are: it asks once for each member and key. The host does not ask,
    /// since the host's key is the right one.
    public func askForKey(userId: UInt64? = nil) async throws { try await ask(.askForKey(userId: userId)) }

    /// Gives the key to a device that has asked for it. Throws unless it is on the list of its user.
    public func grantKey(_ keyAsk: KeyAsk) async throws { try await ask(.grant(keyAsk)) }

    private nonisolated var decided: DeviceCall { now.with { $0.call } }

    private func ask(_ command: CallCommand) async throws {
        let callId = callId
        _ = try await shell.ask { .ofCall(command: $0, callId: callId, command) }
    }
}
