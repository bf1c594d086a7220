// Inputs to the calls of a device, by their origin.

import CallsignVerify

enum CallInput: Sendable {
    /// `callId` is made at random: no other call has it.
    case startCall(command: Int, callId: String, userIds: [UInt64], options: StartOptions)

    /// A command of the app for one call.
    case ofCall(command: Int, callId: String, CallCommand)
    case close(CallEnding)

    /// A push.
    case invited(Invitation)
    case cancelled(callId: String, reason: CallEnding)

    /// `settle` says that the message may be acknowledged.
    case queue(command: Int, event: [String: JSONValue])
    case topic(callId: String, event: [String: JSONValue])
    case done(Done)
    case failed(act: Int, failure: CallsignError)

    /// The time of `nextDeadlineMs` has come.
    case time

    /// First of all, where a call was kept before the app ended.
    case restarted(Kept)

    /// All subscriptions are there; once more after a failure. `kept` is what the last `keep` noted, also before a restart.
    case connected(command: Int, connection: Int, kept: Kept)
    case disconnected
    case setClock(ServerClock)

    /// The outcome of the act with this number. A request gives its `body`; `open` the `key` with its sender and set; `seal` the
    /// `texts` by device with the set, or the one `text`. It could not seal for the devices `without`, which are in the call.
    struct Done: Sendable {
        let act: Int
        var body: [String: JSONValue] = [:]
        var key: Int?
        var from: Sender?
        var texts: [String: JSONValue] = [:]
        var text: String?
        var set = KeySet(keyMembers: "", members: [])
        var without: [String] = []

        /// Names of the user's other devices that have the key and are on no list.
        var unlisted: [String] = []

        /// How long ago the key was sealed, by this device's clock and its sender's.
        var sealedAgoMs = 0
    }

    /// `settle` answers it once.
    var command: Int? {
        switch self {
        case .startCall(let command, _, _, _), .ofCall(let command, _, _), .queue(let command, _), .connected(let command, _, _):
            command
        case .close, .invited, .cancelled, .topic, .done, .failed, .time, .restarted, .disconnected, .setClock: nil
        }
    }
}

enum CallCommand: Sendable {
    case join
    case answer(evenIfOld: Bool = false)

    /// A device of the user's own, by its name.
    case acceptDevice(name: String)
    case decline(DeclineReason)
    case end
    case leave
    case sendInvite(userIds: [UInt64])
    case remove(userId: UInt64)
    case renew
    case resend

    /// All other devices in the call have the key of this epoch: it need not wait.
    case useKey(epoch: Int)

    /// Frames of this member do not open, if one is named.
    case askForKey(userId: UInt64?)
    case grant(KeyAsk)
}
