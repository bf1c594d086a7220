import CallsignVerify
import Foundation

// How a push is shown, judged by the server's time (docs/build/push.md).

/// The call of a push. `uuid` is the system's name of it, the same for each push and message of the call. `callerName` is what to
/// show: the user's own name for the caller, else the caller's. Where `isContact` is false the caller is a stranger, who may have
/// any name: say so.
public struct PushedCall: Sendable, Equatable {
    public let callId: String
    public let uuid: UUID
    public let callerId: String
    public let callerName: String
    public let isContact: Bool
    public let isVideo: Bool
}

/// What to do with a push.
public enum PushAction: Sendable, Equatable {
    /// Ring, `forMs` at the longest.
    case ringing(PushedCall, forMs: Int)

    /// It has rung out: show nothing, unless the system demands it of each push (`judgeVoIPPush`).
    case over(PushedCall)

    /// `shows` takes the place of what was shown while it rang.
    case stopRinging(callId: String, uuid: UUID, reason: StopReason, shows: AfterRinging)

    /// Shown by the system, or by the app: type and members as docs/build/push.md has them.
    case notice(type: String, members: [String: String])

    /// For another device of this phone's past, or shown before.
    case nothing
}

/// What a phone shows in place of a call that rings no longer.
public enum AfterRinging: Sendable, Equatable {
    /// `name` is what to show. Where `isContact` is false they are a stranger, who may have any name: say so.
    case missedCall(name: String, isContact: Bool)

    /// A line without sound that is gone after 10 s: the user has answered or declined it on another device.
    case quiet(StopReason)
    case nothing
}

/// Why a call rings no longer, by its name in the push.
public enum StopReason: String, Sendable {
    case cancelled
    case answeredElsewhere = "answered_elsewhere"
    case declinedElsewhere = "declined_elsewhere"

    /// Also for a reason that is newer than this package.
    case ended
}

/// Judges a push: `members` are those of `pushMembers`, and `deviceId` is this device, nil where there is none. `serverNowMs` is
/// the time by the server's clock, nil until it has named it. `isSeen` says that the push's `eventId` was judged before.
public func judgePush(_ members: [String: String], deviceId: UInt64?, serverNowMs: Int?, isSeen: Bool) -> PushAction {
    let type = members["type"] ?? ""
    guard let deviceId else { return .nothing }
    if let meant = members["deviceId"], callPushes.contains(type), !isSame(meant, "\(deviceId)") { return .nothing }
    if type == "call_invitation" {
        let forMs = ringsForMs(members, serverNowMs)
        let call = pushedCall(members)
        return forMs > 0 ? .ringing(call, forMs: forMs) : .over(call)
    }
    if isSeen { return .nothing }
    guard type == "call_cancel" else { return .notice(type: type, members: members) }
    let call = pushedCall(members)
    let reason = members["reason"].flatMap(StopReason.init) ?? .ended
    let shows: AfterRinging =
        switch reason {
        case .cancelled: .missedCall(name: call.callerName, isContact: call.isContact)
        case .answeredElsewhere, .declinedElsewhere: .quiet(reason)
        case .ended: .nothing
        }
    return .stopRinging(callId: call.callId, uuid: call.uuid, reason: reason, shows: shows)
}

/// The first sixteen octets of SHA-256 of the call's id.
public func callUUID(_ callId: String) -> UUID {
    let o = sha256(Array(callId.utf8))
    return UUID(uuid: (o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11], o[12], o[13], o[14], o[15]))
}

private func pushedCall(_ members: [String: String]) -> PushedCall {
    let callId = members["callId"] ?? ""
    return PushedCall(
        callId: callId, uuid: callUUID(callId), callerId: members["callerId"] ?? "", callerName: members["callerName"] ?? "",
        isContact: members["isContact"] == "true", isVideo: members["isVideo"] == "true")
}

/// How much longer the call rings: until the server has named its time, by the length of its ringing alone.
private func ringsForMs(_ members: [String: String], _ serverNowMs: Int?) -> Int {
    guard let sentAtMs = members["sentAt"].flatMap(wholeNumber), let expiresAtMs = members["expiresAt"].flatMap(timeMsOrNil)
    else { return 0 }
    let left = [sentAtMs, serverNowMs ?? sentAtMs].map { expiresAtMs.subtractingReportingOverflow($0) }
    return left.contains { $0.overflow } ? 0 : left.map(\.partialValue).min() ?? 0
}

private let callPushes: Set = ["call_invitation", "call_cancel", "missed_call"]
