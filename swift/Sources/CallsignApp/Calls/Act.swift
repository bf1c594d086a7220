// Acts that the shell carries out for the calls of a device.

import CallsignVerify

/// Carried out in this order. Those with a number in `act` are answered by `done` or `failed`.
enum CallAct: Sendable {
    case request(Request)
    case send(destination: String, body: [String: JSONValue])
    case watch(act: Int, callId: String)
    case unwatch(callId: String)
    case open(Open)
    case make(key: Int)
    case seal(Seal)

    /// Overwrites them.
    case wipe(keys: [Int])

    /// Answers the app, or the queue: all that it asked for is done, or failed.
    case settle(command: Int, callId: String?, error: CallsignError?)

    /// Notes for the next start which call this device is in.
    case keep(Kept)
    case emit(callId: String, News)

    /// The body is that of `nonce` where it has one: random octets that have this number.
    struct Request: Sendable {
        let act: Int
        let method: String
        let path: String
        var body: [String: JSONValue]?
        let nonce: Int?
    }

    /// Tries the senders in turn, and says which it was. `nonce` is the number of the own one.
    struct Open: Sendable {
        let act: Int
        let key: Int
        let text: String
        let from: [Sender]
        let use: Use
        let hints: SetHints
        let nonce: Int?
    }

    /// With the asking device's `nonce`, if it sent one.
    struct Seal: Sendable {
        let act: Int
        let key: Int
        let receivers: Receivers
        let use: Use
        let nonce: String?
    }

    /// The number that its outcome has; nil for one without an outcome.
    var act: Int? {
        switch self {
        case .request(let request): request.act
        case .watch(let act, _): act
        case .open(let open): open.act
        case .seal(let seal): seal.act
        case .send, .unwatch, .make, .wipe, .settle, .keep, .emit: nil
        }
    }
}

/// What a key is for.
struct Use: Sendable, Equatable {
    let callId: String
    let epoch: Int
}

enum Receivers: Sendable {
    /// All devices of these users.
    case users([UInt64])

    /// For a new key: the devices in the call, all of those who may come, and all of these users.
    case participants([CallParticipant], userIds: [UInt64] = [])

    /// For a held key: those of its set that are in the call.
    case members([CallParticipant], keyMembers: String)

    /// For a held key: one of its set.
    case asker(KeyAsk, keyMembers: String)
}

enum News: Sendable {
    case ringing
    case resumed
    case state(CallState)
    case key(HeldKey)
    case sending(HeldKey)
    case participant(CallParticipant)
    case media(CallGateway)
    case keyAsked(KeyAsk)
    case failed(CallsignError)
}
