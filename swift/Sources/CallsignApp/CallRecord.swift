// A call as the server has it.

import CallsignVerify

public enum ParticipantState: String, Sendable {
    case invited
    case ringing
    case joined
    case left
    case lost
    case declined
    case busy
    case missed
    case removed

    /// A newer server's.
    case unknown
}

/// One person of a call.
public struct CallParticipant: Sendable, Equatable {
    public var userId: UInt64
    public var displayName: String

    /// For screens: this user's own name for them, else their display name.
    public var name: String
    public var state: ParticipantState
    public var isHost: Bool
    public var invitedBy: UInt64

    /// The device that is in the call, or was last.
    public var deviceId: UInt64?

    /// `<userId>:<displayName>`; enter the media room without it.
    public var mediaName: String

    /// What the device sends at the media gateway: show no name with any other feed.
    public var feedIds: [Int]
    var invitedAtMs: Int

    /// The person is invited, and none of their devices has shown itself to the server for five seconds: say that they can't be
    /// reached now. A phone of theirs may ring yet, and the state then changes.
    public var isUnreachable = false

    /// Only with `isUnreachable`: they have the app open on a device that they have not approved, where no call rings. Say that they
    /// are to approve it.
    public var hasUnapprovedDevice = false

    /// That device at LiveKit, while it is in the call.
    public var identity: String?

    /// As the sets of devices name it that keys are sealed for.
    var deviceName: String { nameOfDevice(userId, deviceId) }

    var person: Person { Person(userId: userId, displayName: displayName) }
}

/// As no set has it where there is no device.
private func nameOfDevice(_ userId: UInt64, _ deviceId: UInt64?) -> String {
    "\(userId)_\(deviceId.map { "\($0)" } ?? "null")"
}

/// Which media gateway the call has, and this device's tokens for it: see docs/build/media.md.
public struct CallGateway: Sendable, Equatable {
    public var kind: String
    public var state: String?
    public var url: String?
    public var roomToken: String?
    public var pluginToken: String?

    /// Of LiveKit: for its `connect`.
    public var token: String?

    /// Of LiveKit: the bits of the keys that frames are sealed with, the same for all devices.
    public var keySize: Int?
}

struct CallRecord: Sendable, Equatable {
    var callId: String

    /// The greater of two is the later one.
    var version: Int
    var roomId: Int?
    var status: String
    var isVideo: Bool
    var isOnGoing: Bool
    var initiatorId: UInt64
    var hostUserId: UInt64
    var startedAtMs: Int?
    var endReason: String?
    var ringTimeoutMs: Int
    var keyEpoch: Int
    var keyRotationMs: Int
    var participants: [CallParticipant]
    var media: CallGateway

    /// Who calls this user, where it rings for them.
    var caller: Person?
    var encryptedAESKey: String?

    /// Who has sealed it.
    var keyFrom: Sender?

    /// Sets of devices that the newest keys are for.
    var keySets: [String]

    func participant(_ userId: UInt64) -> CallParticipant? { participants.first { $0.userId == userId } }

    func person(_ userId: UInt64) -> Person { participant(userId)?.person ?? Person(userId: userId, displayName: "") }

    /// With what an event of the call's topic tells.
    func changedBy(_ event: [String: JSONValue]) throws -> CallRecord {
        var record = self
        record.version = try event.needNumber("version")
        if event.text("type") == "host_changed" {
            record.hostUserId = try event.needId("hostUserId")
        } else if event["participant"] != nil {
            let changed = try participantOf(event.member("participant"))
            record.participants = participants.filter { $0.userId != changed.userId } + [changed]
        }
        return record
    }
}

func callRecordOf(_ members: [String: JSONValue]) throws -> CallRecord {
    guard let callId = members.callId() else { throw answerInvalid() }
    return CallRecord(
        callId: callId,
        version: try members.needSafe("version"),
        roomId: members.number("roomId"),
        status: try members.needText("status"),
        isVideo: members.flag("isVideo"),
        isOnGoing: members.flag("isOnGoing"),
        initiatorId: try members.needId("initiatorId"),
        hostUserId: try members.needId("hostUserId"),
        startedAtMs: try members.text("startedAt").map(timeMsOf),
        endReason: members.text("endReason"),
        ringTimeoutMs: try members.needDurationMs("ringTimeoutIn"),
        keyEpoch: try members.needSafe("keyEpoch"),
        keyRotationMs: try members.needDurationMs("keyRotationIn"),
        participants: try members.members("participants").map(participantOf),
        media: try gatewayOf(members.member("media")),
        caller: try members["invitation"]?.object.map(callerIn),
        encryptedAESKey: members.text("encryptedAESKey"),
        keyFrom: try keyFromIn(members),
        keySets: members["keySets"] == nil ? [] : try members.members("keySets").map { try $0.needText("keyMembers") }
    )
}

extension [String: JSONValue] {
    /// The id of a call. It is in ASCII, of which no two texts are equal for Swift but differ for others.
    func callId() -> String? {
        text("callId").flatMap { id in id.utf8.allSatisfy { $0 < 0x80 } ? id : nil }
    }

    /// A number that JavaScript can tell too: no sum of two of them is too large.
    func needSafe(_ name: String) throws -> Int {
        let number = try needNumber(name)
        guard (-safeMax...safeMax).contains(number) else { throw answerInvalid() }
        return number
    }
}

private let safeMax = 1 << 53

/// The device that has sealed a key, where the server names it.
func keyFromIn(_ members: [String: JSONValue]) throws -> Sender? {
    if members["keyFromUserId"] == nil || members["keyFromDeviceId"] == nil { return nil }
    return Sender(userId: try members.needId("keyFromUserId"), deviceId: try members.needId("keyFromDeviceId"))
}


func participantOf(_ members: [String: JSONValue]) throws -> CallParticipant {
    CallParticipant(
        userId: try members.needId("userId"),
        displayName: members.text("displayName") ?? "",
        name: members.text("displayName") ?? "",
        state: members.text("state").flatMap(ParticipantState.init) ?? .unknown,
        isHost: members.flag("isHost"),
        invitedBy: try members.needId("invitedBy"),
        deviceId: members.text("deviceId").flatMap(uint64),
        mediaName: members.text("mediaName") ?? "",
        feedIds: members.numbers("feedIds"),
        invitedAtMs: try members.needTimeMs("invitedAt"),
        identity: members.text("identity")
    )
}

func gatewayOf(_ members: [String: JSONValue]) throws -> CallGateway {
    CallGateway(
        kind: try members.needText("kind"),
        state: members.text("state"),
        url: members.text("url"),
        roomToken: members.text("roomToken"),
        pluginToken: members.text("pluginToken"),
        token: members.text("token"),
        keySize: members.number("keySize")
    )
}

func isOver(_ status: String) -> Bool { status != "ringing" && status != "active" }

func endingOf(_ reason: String?) -> CallEnding { reason.flatMap(CallEnding.init) ?? .unknown }
