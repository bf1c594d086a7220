// What a device knows of its calls, as `src/app/calls/device.ts` has it.

import CallsignVerify

struct Device: Sendable {
    let userId: UInt64
    let deviceId: UInt64
    var calls: [DeviceCall] = []
    var starts: [CallStart] = []

    /// Calls that ended here, the oldest first: an invitation from before then does not ring again.
    var ended: [EndedCall] = []

    /// Acts whose outcome is still to come.
    var waiting: [CallWaiting] = []
    var restoring = Restoring.waiting([])
    var clock = ServerClock(aheadMs: 0, isKnown: false)

    /// A number for each connection; nil without one.
    var connection: Int?

    /// Counts acts and keys.
    var count = 0
    var kept = Kept()

    /// As the sets of devices name it that keys are sealed for.
    var deviceName: String { Sender(userId: userId, deviceId: deviceId).deviceName }
}

/// `aheadMs` is the server's time less the device's own, which runs evenly. `isKnown` says whether the server has named its time
/// yet.
struct ServerClock: Sendable, Equatable {
    let aheadMs: Int
    let isKnown: Bool
}

struct EndedCall: Sendable, Equatable {
    let callId: String
    let atMs: Int
}

/// The call of before a restart: until it is there again, messages of unknown calls wait.
enum Restoring: Sendable {
    case waiting([Early])
    case restored
}

struct Early: Sendable {
    let command: Int
    let event: [String: JSONValue]
}

struct StartOptions: Sendable, Equatable {
    let isVideo: Bool
    var roomId: Int?
}

/// A call that is being made: its keys are sealed, and the server is asked.
struct CallStart: Sendable {
    /// The app waits for it.
    let command: Int

    /// Chosen here: its key is bound to it.
    let callId: String
    let userIds: [UInt64]
    let options: StartOptions
    let key: Int
    let triesLeft: Int

    /// Once it is sealed.
    var set: KeySet?

    /// The app closed all calls meanwhile: this one ends as soon as it begins.
    var closed: CallEnding?

    /// The invitation of the only callee, which came while this was under way.
    var held: Ringing?

    /// They have turned out to call each other, and that call was over by then: it is started once more, once.
    var isSecond = false
}

/// The tokens are for room `roomId`: the call may have another one by now.
struct ReadyMedia: Sendable, Equatable {
    let roomId: Int?
    let gateway: CallGateway
}

struct DeviceCall: Sendable, Equatable {
    let callId: String
    let isVideo: Bool
    let isOnGoing: Bool
    let isIncoming: Bool
    let caller: Person

    /// The invitation's time by the server's clock; 0 without one.
    let invitedAtMs: Int
    var phase: CallPhase
    var record: CallRecord?

    /// From `media_ready`, which may come before the reply to `join` that does not have it yet.
    var media: ReadyMedia?

    /// Whether the caller and the key that they sent hold; nil while that is checked.
    var isVerified: Bool?
    var key = KeyState(isAsked: false, held: [])
    var sending = Sending(epoch: 0, uses: [], drops: [])

    /// Since when the newest key is here.
    var heldAtMs = 0

    /// Members whose frames the newest key does not open, and another one was asked for.
    var unopened: [UInt64] = []

    /// Whom this device has removed: they are in no set that it makes or takes.
    var removed: [UInt64] = []

    /// Invitations of people whom it does not reach; each until the person's state changes.
    var unreachable: [Unreachable] = []

    /// Devices in the call that a key of this device could not be sealed for: none is made for them alone.
    var without: [String] = []

    /// Devices that have asked, and are to have the next key.
    var admitted: [Sender] = []

    /// The number of the nonce of its open ask: answers to another one do not open.
    var nonce: Int?

    /// A key that another device than the host's has given.
    var offer: Offer?
    var topic = TopicState.off
    var rotation = Rotation.idle
    var end = EndState.open

    /// Version of the last `call_moved` that came while this device was on its way in; 0 before.
    var movedVersion = 0

    /// Users who asked for the key while this device did not have it either.
    var askers: [UInt64] = []
}

struct Unreachable: Sendable, Equatable {
    let userId: UInt64
    let invitedAtMs: Int
    let hasUnapprovedDevice: Bool
}

/// Taken at `atMs`, unless the host gives one.
struct Offer: Sendable, Equatable {
    let key: HeldKey
    let atMs: Int
}

enum TopicState: Sendable {
    case off
    case coming
    case on
}

struct Sender: Sendable, Equatable {
    let userId: UInt64
    let deviceId: UInt64

    var deviceName: String { "\(userId)_\(deviceId)" }
}

/// The shell knows the octets by the number `key`: equal octets have the same number. A provisional one is not the host's, who
/// may replace it.
struct HeldKey: Sendable, Equatable {
    var epoch: Int
    var key: Int
    var fromUserId: UInt64
    var set: KeySet
    var isProvisional = false

    /// Names of the user's other devices that have it and are on no list.
    var unlisted: [String] = []
}

/// The devices that a key is sealed for: the set as it travels, and their names, `<userId>_<deviceId>`.
struct KeySet: Sendable, Equatable {
    let keyMembers: String
    let members: [String]
}

/// `isAsked`: another one is wanted, though this device has one. `held`: the newest first; none before the first.
struct KeyState: Sendable, Equatable {
    var isAsked: Bool
    var held: [HeldKey]
}

/// Frames are sealed with the key of `epoch`, 0 before the first. Newer ones are taken when `uses` say, older ones go when
/// `drops` say.
struct Sending: Sendable, Equatable {
    var epoch: Int
    var uses: [Due]
    var drops: [Due]
}

struct Due: Sendable, Equatable {
    let epoch: Int
    let atMs: Int
}

/// An invitation, from wherever it came. `invitedAtMs` is by the server's clock, `untilMs` by this device's.
struct Ringing: Sendable, Equatable {
    let callId: String
    let isVideo: Bool
    let isOnGoing: Bool
    let caller: Person
    let text: String
    let epoch: Int

    /// The device that has sealed its key, as the server says.
    let from: Sender?
    let invitedAtMs: Int
    let untilMs: Int
}

/// Noted for the next start: the call that it is in; those that it has left, and the server may not have heard; and calls whose
/// key this device has had, the one that was last in use at the end.
struct Kept: Sendable, Equatable {
    var callId: String?
    var leaving: [String] = []
    var opened: [OpenedCall] = []

    /// Names of the user's devices that are on no list, and whose having keys the user has accepted.
    var accepted: [String] = []
}

/// The newest `epoch` of a call. After a restart no older one is taken, and once the call has ended neither is this one. This
/// device has removed the users `removed`.
struct OpenedCall: Sendable, Equatable {
    let callId: String
    let epoch: Int
    var isOver = false
    var removed: [UInt64] = []
}

func unreachable(in call: DeviceCall, _ person: CallParticipant) -> Unreachable? {
    if person.state != .invited { return nil }
    return call.unreachable.first { $0.userId == person.userId && $0.invitedAtMs == person.invitedAtMs }
}

extension CallParticipant {
    func reached(as unreachable: Unreachable?) -> CallParticipant {
        var reached = self
        reached.isUnreachable = unreachable != nil
        reached.hasUnapprovedDevice = unreachable?.hasUnapprovedDevice == true
        return reached
    }
}

extension DeviceCall {
    /// Whether this device takes part, or wants to.
    var isPresent: Bool { !phase.isEnded && phase.rings == nil }

    /// Whether it takes part; else it is on its way in, or does not.
    var isIn: Bool { isPresent && phase.entering == nil }

    /// Whether this device has no key, and asks for it.
    var isAsking: Bool { phase.ask != nil }

    var newestKey: HeldKey? { key.held.first }

    /// The key that came with the invitation, until this device is in.
    var invited: Invited? { phase.rings?.invited ?? phase.entering?.from?.invited }
}

/// Keys that are held, or will be: by an invitation, a start, or an act whose outcome is still to come.
func keysIn(_ device: Device) -> [Int] {
    let ofCalls = device.calls.filter { !$0.phase.isEnded }
        .flatMap { call in (call.key.held + [call.invited?.key, call.offer?.key].compactMap { $0 }).map(\.key) }
    return ofCalls + device.waiting.compactMap { $0.purpose.ownKey } + device.starts.map(\.key)
}

extension Error {
    /// Whether the server may not have heard the request, or could not carry it out.
    var isUnheard: Bool { hasCode("OFFLINE", "NO_ANSWER", "ANSWER_INVALID", "SIGNED_OUT") }

    /// Whether this device has no part in the call any more.
    var isGone: Bool { hasCode("CALL_ENDED", "CALL_NOT_FOUND", "NOT_PARTICIPANT") }

    /// Whether a user's devices, or the epoch of the call, have changed meanwhile.
    var isChanged: Bool { hasCode("DEVICE_LIST_MISMATCH", "EPOCH_CONFLICT") }
}

/// How often what has met a change is made once more, the first time among them.
let tries = 3
