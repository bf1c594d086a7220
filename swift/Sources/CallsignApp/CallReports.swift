import Foundation

// What CallKit or LiveCommunicationKit has to be told: of a VoIP push, and of a call's end. CallReports+CallKit.swift says it in
// CallKit's own types.

/// A call to report to the system. `endsAs` is set where it has to be ended at once, for it is over already.
public struct CallReport: Sendable, Equatable {
    public let uuid: UUID

    /// Empty where the call is not known.
    public let callId: String

    /// The caller's id: the value of a generic handle.
    public let handle: String
    public let caller: PushWords
    public let isVideo: Bool

    /// The longest that it rings.
    public let forMs: Int
    public let endsAs: SystemEnd?
}

/// Why a call has ended, as the system lists it.
public enum SystemEnd: Int, Sendable {
    // By the numbers of CXCallEndedReason.
    case failed = 1
    case remoteEnded, unanswered, answeredElsewhere, declinedElsewhere
}

/// What PushKit's handler does before it returns.
public enum VoIPPushAction: Sendable, Equatable {
    /// Also a call that rings already: the system finds it by its UUID, and shows nothing new.
    case report(CallReport)

    /// The system demands no report of this one, and there is nothing to show.
    case nothing
}

/// Judges a VoIP push. Apple ends an app that gets one and reports no call, so what is over, for another device or not to be read
/// is reported too, and ended at once. `members` are those of `pushMembers`, opened where they were sealed; nil where they do not
/// open. `rings` says whether a call of this UUID rings here. `mustReport` is PushKit's, of iOS 26.4 and later. `unknown` names a
/// call whose own UUID is not known.
public func judgeVoIPPush(
    _ members: [String: String]?, deviceId: UInt64?, serverNowMs: Int?, rings: (UUID) -> Bool, mustReport: Bool = true,
    unknown: UUID = UUID()
) -> VoIPPushAction {
    switch members.map({ judgePush($0, deviceId: deviceId, serverNowMs: serverNowMs, isSeen: false) }) {
    case .ringing(let call, let forMs):
        return mustReport || !rings(call.uuid) ? .report(reportOf(call, forMs: forMs, endsAs: nil)) : .nothing
    case .over(let call):
        return mustReport ? .report(reportOf(call, forMs: 0, endsAs: .unanswered)) : .nothing
    case .stopRinging, .notice, .nothing, nil:
        let report = CallReport(
            uuid: unknown, callId: "", handle: "", caller: .named("sealed_call"), isVideo: false, forMs: 0, endsAs: .failed)
        return mustReport ? .report(report) : .nothing
    }
}

private func reportOf(_ call: PushedCall, forMs: Int, endsAs: SystemEnd?) -> CallReport {
    CallReport(
        uuid: call.uuid, callId: call.callId, handle: call.callerId,
        caller: shownName(call.callerName, isContact: call.isContact),
        isVideo: call.isVideo, forMs: forMs, endsAs: endsAs)
}

extension SystemEnd {
    /// Of a push that ends the ringing.
    public init(_ reason: StopReason) {
        switch reason {
        case .cancelled, .ended: self = .remoteEnded
        case .answeredElsewhere: self = .answeredElsewhere
        case .declinedElsewhere: self = .declinedElsewhere
        }
    }

    /// Of a call that has ended. Nil where the user has ended it here: the system knows.
    public init?(_ ending: CallEnding) {
        switch ending {
        case .left: return nil
        case .answeredElsewhere, .moved: self = .answeredElsewhere
        case .declinedElsewhere, .busyElsewhere: self = .declinedElsewhere
        case .missed, .unanswered: self = .unanswered
        case .internal, .keyLost: self = .failed
        case .hangup, .cancelled, .declined, .callerLost, .empty, .alone, .limit, .removed, .operator, .suspended, .unknown:
            self = .remoteEnded
        }
    }
}
