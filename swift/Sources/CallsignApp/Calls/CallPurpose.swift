// What acts are for whose outcome is still to come.

import CallsignVerify

/// An act whose outcome comes as an input with the same number, and what it is for.
struct CallWaiting: Sendable {
    let act: Int
    var purpose: CallPurpose
}

enum CallPurpose: Sendable {
    case startSeal(command: Int)
    case startCall(command: Int)
    case crossedPending(command: Int, callId: String, failure: CallsignError)
    case crossedOpen(CrossedOpen)

    /// It is settled by whatever comes of it; a refusal with the code `unless` is no failure.
    case command(callId: String, command: Int?, unless: String? = nil)
    case leave(callId: String, command: Int?)
    case end(callId: String, command: Int)
    case joinFind(callId: String, command: Int)
    case invitedRead(callId: String, key: InvitedKey)
    case invitedOpen(callId: String, key: InvitedKey, record: CallRecord)
    case clear(callId: String, other: String)
    case join(callId: String)
    case joinedOpen(callId: String, record: CallRecord)
    case keptLeave(KeptLeave)
    case pending(command: Int, kept: Kept)
    case restore(callId: String, command: Int?)
    case giveUp(callId: String, command: Int?)

    /// `again`: so often the answer was older than the topic, in a row.
    case refresh(callId: String, command: Int?, again: Int)
    case watch(callId: String)
    case keyUpdateRead(callId: String, command: Int, epoch: Int, event: [String: JSONValue])
    case keyUpdate(KeyUpdate)
    case keylessRead(callId: String, command: Int?)
    case sendAsk(callId: String)

    /// The host returns, to make a key.
    case returnAsHost(callId: String)
    case askBeside(callId: String, command: Int?)
    case remove(Removal)
    case grantedOpen(callId: String, command: Int, epoch: Int)
    case comeBack(callId: String, command: Int?, key: HeldKey)
    case askedRead(callId: String, command: Int, ask: KeyAsk)
    case grantSeal(GrantSeal)
    case keysRead(NewKey)
    case keysSeal(NewKey)
    case keys(NewKey)
    case inviteRead(Invite)
    case inviteSeal(Invite)
    case sendInvite(Invite)

    struct CrossedOpen: Sendable {
        let command: Int
        let ringing: Ringing
        let record: CallRecord
        let failure: CallsignError
    }

    struct KeptLeave: Sendable {
        let callId: String
        let command: Int
        let kept: Kept
    }

    struct KeyUpdate: Sendable {
        let callId: String
        let command: Int
        let epoch: Int
        let reason: KeysReason?

        /// The newest there is.
        let record: CallRecord?
    }

    /// `isKnown`: they were removed here before, and the server does not undo that.
    struct Removal: Sendable {
        let callId: String
        let command: Int?
        let userId: UInt64
        let isKnown: Bool
    }

    struct GrantSeal: Sendable {
        let callId: String
        let command: Int
        let ask: KeyAsk
        let epoch: Int
    }
}

extension CallPurpose {
    /// Of the call that it is about.
    var callId: String? {
        switch self {
        case .startSeal, .startCall, .crossedOpen, .pending: nil
        case .crossedPending(_, let callId, _), .command(let callId, _, _), .leave(let callId, _), .end(let callId, _),
            .joinFind(let callId, _), .invitedRead(let callId, _), .invitedOpen(let callId, _, _), .clear(let callId, _),
            .join(let callId), .joinedOpen(let callId, _), .restore(let callId, _), .giveUp(let callId, _),
            .refresh(let callId, _, _), .watch(let callId), .keyUpdateRead(let callId, _, _, _), .keylessRead(let callId, _),
            .sendAsk(let callId), .returnAsHost(let callId), .askBeside(let callId, _), .grantedOpen(let callId, _, _),
            .comeBack(let callId, _, _), .askedRead(let callId, _, _):
            callId
        case .keptLeave(let leave): leave.callId
        case .keyUpdate(let update): update.callId
        case .remove(let removal): removal.callId
        case .grantSeal(let sealed): sealed.callId
        case .keysRead(let sending), .keysSeal(let sending), .keys(let sending): sending.callId
        case .inviteRead(let invite), .inviteSeal(let invite), .sendInvite(let invite): invite.callId
        }
    }

    var command: Int? {
        switch self {
        case .invitedRead, .invitedOpen, .clear, .join, .joinedOpen, .watch, .sendAsk, .returnAsHost: nil
        case .startSeal(let command), .startCall(let command), .crossedPending(let command, _, _), .end(_, let command),
            .joinFind(_, let command), .pending(let command, _), .keyUpdateRead(_, let command, _, _),
            .grantedOpen(_, let command, _), .askedRead(_, let command, _):
            command
        case .command(_, let command, _), .leave(_, let command), .restore(_, let command), .giveUp(_, let command),
            .refresh(_, let command, _), .keylessRead(_, let command), .askBeside(_, let command), .comeBack(_, let command, _):
            command
        case .crossedOpen(let crossed): crossed.command
        case .keptLeave(let leave): leave.command
        case .keyUpdate(let update): update.command
        case .remove(let removal): removal.command
        case .grantSeal(let sealed): sealed.command
        case .keysRead(let sending), .keysSeal(let sending), .keys(let sending): sending.command
        case .inviteRead(let invite), .inviteSeal(let invite), .sendInvite(let invite): invite.command
        }
    }

    /// Without its command where that is this one of a connection; else as it is.
    func without(connected command: Int?) -> CallPurpose {
        if self.command != command { return self }
        switch self {
        case .restore(let callId, _): return .restore(callId: callId, command: nil)
        case .giveUp(let callId, _): return .giveUp(callId: callId, command: nil)
        case .refresh(let callId, _, let again): return .refresh(callId: callId, command: nil, again: again)
        default: return self
        }
    }

    /// The number of the key that it will have held by its end.
    var ownKey: Int? {
        switch self {
        // One that is sent once more is wiped with its call.
        case .keysRead(let sending), .keysSeal(let sending), .keys(let sending): sending.reason == .emergency ? nil : sending.key
        case .inviteRead(let invite), .inviteSeal(let invite), .sendInvite(let invite): invite.key
        case .comeBack(_, _, let key): key.key
        default: nil
        }
    }
}

/// A key on its way to all in the call; without a command it is the rotation's.
struct NewKey: Sendable {
    let callId: String
    let reason: KeysReason
    let command: Int?
    var triesLeft: Int
    var key: Int?

    /// The key's own, whatever this device holds by the time that it is sealed.
    var epoch: Int?
    var record: CallRecord?

    /// Once it is sealed.
    var set: KeySet?
    var without: [String] = []
}

struct Invite: Sendable {
    let callId: String
    let command: Int
    let userIds: [UInt64]
    var triesLeft: Int

    /// The new key's, once there is one.
    var key: Int?
    var epoch: Int?
    var set: KeySet?
}
