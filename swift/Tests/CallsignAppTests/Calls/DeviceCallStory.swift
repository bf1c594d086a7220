// Plays the stories of `test/vectors/device-calls.jsonl`, whose first line says how one is read.

import CallsignVerify
import TestSupport

@testable import CallsignApp

struct Stories {
    let me: [String: JSONValue]
    let all: [JSONValue]
    let situations: [String: JSONValue]

    init() throws {
        var values: [String: JSONValue] = [:]
        let lines = try readLines("device-calls").map { line in
            let said = try expanded(line, values)
            if let name = said["value"]?.string { values[name] = try said.get("is") }
            return said
        }
        me = try known(lines.compactMap { $0["me"]?.object }.first, "me")
        all = lines.filter { $0["name"] != nil }
        situations = Dictionary(lines.compactMap { line in line["situation"]?.string.map { ($0, line) } }) { $1 }
    }
}

/// `like` names a value, and the members beside it take the place of its own.
private func expanded(_ said: JSONValue, _ values: [String: JSONValue]) throws -> JSONValue {
    switch said {
    case .array(let all): return .array(try all.map { try expanded($0, values) })
    case .object(let members):
        var whole = try members["like"]?.string.map { try known(values[$0]?.object, $0) } ?? [:]
        for (name, value) in members where name != "like" { whole[name] = try expanded(value, values) }
        return .object(whole)
    default: return said
    }
}

typealias Decide = (_ before: Device, _ input: CallInput, _ nowMs: Int) throws -> CallDecision

final class StoryPlayer {
    private struct Unanswered {
        let act: Int
        let name: String
        let key: Int?

        /// The devices that its key is for, where the story names none.
        let members: [String]
    }

    private let stories: Stories
    private let decide: Decide
    private var device: Device
    private var nowMs = 0

    /// Acts without an outcome so far, the oldest first.
    private var unanswered: [Unanswered] = []

    /// How often each command was answered.
    private var answers: [String: Int] = [:]

    /// Keys that the shell has, by their number in the machine.
    private var octets: Set<Int> = []
    private var keys: [Int] = []
    private var nonces: [Int] = []
    private var commands: [String] = []

    init(_ stories: Stories, _ decide: @escaping Decide = { try CallsignApp.decide($0, $1, nowMs: $2) }) throws {
        self.stories = stories
        self.decide = decide
        device = Device(userId: try stories.me.needId("userId"), deviceId: try stories.me.needId("deviceId"))
    }

    /// Plays a situation, whose acts no story looks at.
    func begin(_ situation: String) throws {
        let given = try known(stories.situations[situation], situation)
        if let before = given["given"]?.string { try begin(before) }
        for step in given.list("steps") { try play(step) }
    }

    /// Gives the acts, told.
    @discardableResult func play(_ step: JSONValue) throws -> [JSONValue] {
        nowMs = step["at"]?.int ?? nowMs
        return try play(inputOf(known(step["in"]?.object, "in")))
    }

    @discardableResult private func play(_ input: CallInput) throws -> [JSONValue] {
        let decision = try decide(device, input, nowMs)
        device = decision.device
        return try decision.acts.map(told)
    }

    /// Each with its state, those whom it does not reach, and its room and caller where the story names them; an ended one is
    /// gone with the next input.
    var calls: [String] {
        device.calls.map { call in
            let people = call.record?.participants.compactMap { unreachable(in: call, $0) } ?? []
            let without = people.map { " without \($0.userId)\($0.hasUnapprovedDevice ? ", unapproved" : "")" }.joined()
            let room = call.record?.roomId.map { " in room \($0)" } ?? ""
            let caller = call.caller.isContact.map { " by \(call.caller.name)\($0 ? "" : ", a stranger")" } ?? ""
            return "\(call.callId) \(stateIn(call.phase))\(without)\(room)\(caller)"
        }
    }

    var nextMs: Int? { nextDeadlineMs(device) }

    /// Left after a story, when nothing should be.
    var rest: String {
        let notAnsweredOnce = answers.filter { $0.value != 1 }.keys.sorted()
        return "calls \(calls), next \(nextMs.map { "\($0)" } ?? "never"), not answered once \(notAnsweredOnce), "
            + "keys \(octets.sorted())"
    }

    /// A person gives up all that goes on, and no request is answered any more: nothing is left, and nothing waits.
    func leaveAll() throws {
        for call in device.calls {
            if call.phase.rings != nil {
                try play(.ofCall(command: commanded("decline"), callId: call.callId, .decline(.declined)))
            } else if call.isPresent {
                try play(.ofCall(command: commanded("leave"), callId: call.callId, .leave))
            }
        }
        try play(.close(.left))
        try play(.time)
        for _ in 0..<100 {
            guard let last = unanswered.popLast() else { return }
            try play(.failed(act: last.act, failure: CallsignError("OFFLINE", "")))
        }
    }

    private func inputOf(_ said: [String: JSONValue]) throws -> CallInput {
        let on = try said.needText("on")
        switch on {
        case "start":
            let options = try said.member("options")
            return .startCall(
                command: commanded(on), callId: try said.needText("callId"), userIds: try idsIn(said),
                options: StartOptions(isVideo: options.flag("isVideo"), roomId: options.number("roomId")))
        case "close": return .close(endingOf(said.text("reason")))
        case "invited": return .invited(try invitationOf(said.member("invitation")))
        case "cancelled": return .cancelled(callId: try said.needText("callId"), reason: endingOf(said.text("reason")))
        case "queue":
            let event = try said.member("event")
            return .queue(command: commanded(try event.needText("type")), event: event)
        case "topic": return .topic(callId: try said.needText("callId"), event: try said.member("event"))
        case "done": return .done(try doneOf(said))
        case "failed": return .failed(act: try answered(said).act, failure: try failureIn(said.member("failure")))
        case "time": return .time
        case "restarted": return .restarted(try keptBefore(said))
        case "connected":
            return .connected(
                command: commanded(on), connection: try said.needNumber("connection"), kept: try keptBefore(said))
        case "disconnected": return .disconnected
        case "clock":
            return .setClock(ServerClock(aheadMs: try said.needNumber("aheadMs"), isKnown: said.flag("isKnown")))
        default:
            return .ofCall(command: commanded(on), callId: try said.needText("callId"), try commandOf(on, said))
        }
    }

    private func commandOf(_ on: String, _ said: [String: JSONValue]) throws -> CallCommand {
        switch on {
        case "join": .join
        case "answer": .answer(evenIfOld: said.flag("evenIfOld"))
        case "accept-device": .acceptDevice(name: try said.needText("name"))
        case "decline": .decline(try known(said.text("reason").flatMap(DeclineReason.init), "reason"))
        case "end": .end
        case "leave": .leave
        case "invite": .sendInvite(userIds: try idsIn(said))
        case "remove": .remove(userId: try said.needId("userId"))
        case "renew": .renew
        case "resend": .resend
        case "use": .useKey(epoch: try said.needNumber("epoch"))
        case "ask": .askForKey(userId: said.text("userId").flatMap(uint64))
        case "grant": .grant(try askIn(said.member("ask")))
        default: throw StoryError(fault: "no input is named \(on)")
        }
    }

    private func doneOf(_ said: [String: JSONValue]) throws -> CallInput.Done {
        let answered = try answered(said)
        let opened = try said.number("key").map { try known(keys.indices.contains($0 - 1) ? keys[$0 - 1] : nil, "key") }
        let key = opened ?? answered.key
        if let key { octets.insert(key) }
        // The text of a set is the names in it.
        let members = Set(try said.textsOrNil("members") ?? answered.members).sorted()
        return CallInput.Done(
            act: answered.act,
            body: said["body"]?.object ?? [:],
            key: key,
            from: try said["from"]?.object.map {
                Sender(userId: try $0.needId("userId"), deviceId: try $0.needId("deviceId"))
            },
            texts: said["texts"]?.object ?? [:],
            text: said.text("text"),
            set: KeySet(keyMembers: said.text("keyMembers") ?? members.joined(separator: " "), members: members),
            without: try said.textsOrNil("without") ?? [],
            unlisted: try said.textsOrNil("unlisted") ?? [],
            sealedAgoMs: said.number("sealedAgoMs") ?? 0
        )
    }

    private func answered(_ said: [String: JSONValue]) throws -> Unanswered {
        let name = try said.needText("of")
        guard let at = unanswered.lastIndex(where: { $0.name.hasPrefix(name) }) else {
            throw StoryError(fault: "nothing unanswered begins with \(name)")
        }
        return unanswered.remove(at: at)
    }

    private func commanded(_ name: String) -> Int {
        let count = commands.filter { $0 == name || $0.hasPrefix("\(name) ") }.count
        let command = count == 0 ? name : "\(name) \(count + 1)"
        commands.append(command)
        answers[command] = 0
        return commands.count
    }

    private func told(_ act: CallAct) throws -> JSONValue {
        let name = nameOf(act)
        var body: [String: JSONValue]?
        var key: Int?
        switch act {
        case .request(let request): body = request.body
        case .send(_, let sent): body = sent.isEmpty ? nil : sent
        case .open(let open): key = open.key
        case .make(let made): octets.insert(made)
        case .wipe(let wiped): octets.subtract(wiped)
        case .settle(let command, _, _): answers[commands[command - 1], default: 0] += 1
        case .watch, .unwatch, .seal, .keep, .emit: break
        }
        if let number = act.act {
            unanswered.append(Unanswered(act: number, name: name, key: key, members: membersFor(act)))
        }
        return body.map { .object([name: .object($0)]) } ?? .string(name)
    }

    /// All who have a part in the call: the story names others.
    private func membersFor(_ act: CallAct) -> [String] {
        let own = device.deviceName
        switch act {
        case .open(let open):
            let others = recordOf(open)?.participants.filter { $0.state != .removed } ?? []
            return [own] + open.from.map(\.deviceName) + others.map(deviceOf)
        case .seal(let seal):
            switch seal.receivers {
            case .users(let userIds): return [own] + userIds.map(deviceOf)
            case .participants(let people, let userIds): return [own] + userIds.map(deviceOf) + receiversAmong(people)
            case .members(let people, _): return [own] + receiversAmong(people)
            case .asker: return [own]
            }
        default: return []
        }
    }

    private func recordOf(_ open: CallAct.Open) -> CallRecord? {
        switch device.waiting.first(where: { $0.act == open.act })?.purpose {
        case .crossedOpen(let crossed): crossed.record
        case .invitedOpen(_, _, let record), .joinedOpen(_, let record): record
        case .keyUpdate(let update): update.record
        default: device.calls.first { $0.callId == open.use.callId }?.record
        }
    }

    private func numberOf(_ number: Int, in numbers: inout [Int]) -> Int {
        if !numbers.contains(number) { numbers.append(number) }
        return (numbers.firstIndex(of: number) ?? 0) + 1
    }

    /// Keys are numbered as they first appear.
    private func keyOf(_ key: Int) -> Int { numberOf(key, in: &keys) }

    private func nonceOf(_ nonce: Int) -> Int { numberOf(nonce, in: &nonces) }
}

// The names of acts and news.
extension StoryPlayer {
    private func nameOf(_ act: CallAct) -> String {
        switch act {
        case .request(let request):
            return "\(request.method) \(request.path)" + (request.nonce.map { " with nonce \(nonceOf($0))" } ?? "")
        case .send(let destination, _): return "SEND \(destination)"
        case .watch(_, let callId): return "watch \(callId)"
        case .unwatch(let callId): return "unwatch \(callId)"
        case .open(let open): return nameOf(open)
        case .make(let key): return "make key \(keyOf(key))"
        case .seal(let seal):
            let asked = seal.nonce.map { ", nonce \($0)" } ?? ""
            return "seal key \(keyOf(seal.key))\(nameOf(seal.use)) for \(nameOf(seal.receivers))\(asked)"
        case .wipe(let keys): return "wipe key \(keys.map { "\(keyOf($0))" }.joined(separator: " "))"
        case .keep(let kept): return nameOf(kept)
        case .settle(let command, let callId, let error):
            let parts = ["settle \(commands[command - 1])", callId.map { "call \($0)" }, error?.code]
            return parts.compactMap { $0 }.joined(separator: ": ")
        case .emit(let callId, let news): return "\(callId): \(nameOf(news))"
        }
    }

    private func nameOf(_ open: CallAct.Open) -> String {
        let from = open.from.map(\.deviceName).joined(separator: " ")
        let change = open.hints.change.map { " changed by +\($0.added) -\($0.removed.joined(separator: " -"))" } ?? ""
        let sets = open.hints.sets
        let set = sets.isEmpty ? "" : ", set \(sets.joined(separator: " or "))\(change)"
        let asked = open.nonce.map { ", nonce \(nonceOf($0))" } ?? ""
        return "open \(open.text)\(nameOf(open.use)) from \(from) as key \(keyOf(open.key))\(set)\(asked)"
    }

    private func nameOf(_ use: Use) -> String { " of call \(use.callId), epoch \(use.epoch)," }

    private func nameOf(_ kept: Kept) -> String {
        let parts = [
            kept.callId.map { "call \($0)" },
            kept.leaving.isEmpty ? nil : "leaving \(kept.leaving.joined(separator: " "))",
            kept.opened.isEmpty ? nil : "opened \(kept.opened.map(nameOf).joined(separator: " and "))",
            kept.accepted.isEmpty ? nil : "accepted \(kept.accepted.joined(separator: " "))",
        ].compactMap { $0 }
        return "keep \(parts.isEmpty ? "nothing" : parts.joined(separator: ", "))"
    }

    private func nameOf(_ opened: OpenedCall) -> String {
        let removed = opened.removed.isEmpty ? "" : ", without \(spaced(opened.removed))"
        return "\(opened.callId) to epoch \(opened.epoch)\(opened.isOver ? ", over" : "")\(removed)"
    }

    private func nameOf(_ receivers: Receivers) -> String {
        switch receivers {
        case .users(let userIds): nameOf([], userIds)
        case .participants(let people, let userIds): nameOf(people, userIds)
        case .members(let people, let keyMembers): "\(nameOf(people, [])) of set \(keyMembers)"
        case .asker(let ask, let keyMembers): "device \(ask.deviceName) of set \(keyMembers)"
        }
    }

    private func nameOf(_ participants: [CallParticipant], _ userIds: [UInt64]) -> String {
        let people = participants.map { "\($0.userId) \($0.state.rawValue)" }.joined(separator: ", ")
        let parts = [people.isEmpty ? nil : "participants \(people)", userIds.isEmpty ? nil : "users \(spaced(userIds))"]
        return parts.compactMap { $0 }.joined(separator: " and ")
    }

    private func nameOf(_ news: News) -> String {
        switch news {
        case .ringing: return "ringing"
        case .resumed: return "resumed"
        case .state(let state): return "state \(state.rawValue)"
        case .key(let key):
            let provisional = key.isProvisional ? ", provisional" : ""
            return "key \(keyOf(key.key)) of epoch \(key.epoch) from \(key.fromUserId)\(provisional)"
        case .sending(let key): return "sends with key \(keyOf(key.key))"
        case .participant(let person):
            let unreachable = person.hasUnapprovedDevice ? "unreachable, unapproved" : "unreachable"
            return "participant \(person.userId) \(person.isUnreachable ? unreachable : person.state.rawValue)"
        case .media(let gateway): return "media \(gateway.state ?? "null")"
        case .keyAsked(let ask): return "key-asked \(ask.deviceName)"
        case .failed(let failure): return "error \(failure.code)"
        }
    }
}

/// A story that does not go on.
struct StoryError: Error {
    let fault: String
}

private func spaced(_ userIds: [UInt64]) -> String { userIds.map { "\($0)" }.joined(separator: " ") }

private func stateIn(_ phase: CallPhase) -> String {
    switch phase {
    case .ringingIn: "ringing in"
    case .ringingOut: "ringing out"
    case .entering(let entering): entering.step.rawValue
    case .active: "active"
    case .rejoining: "rejoining"
    case .keyless: "keyless"
    case .ended: "ended"
    }
}

private func keptBefore(_ said: [String: JSONValue]) throws -> Kept { try known(keptIn(said.member("kept")), "kept") }

private func idsIn(_ said: [String: JSONValue]) throws -> [UInt64] {
    try said.texts("userIds").map { try known(uint64($0), $0) }
}

/// A person has the device of ten times their number.
private func deviceOf(_ userId: UInt64) -> String { Sender(userId: userId, deviceId: 10 &* userId).deviceName }

private func deviceOf(_ participant: CallParticipant) -> String {
    participant.deviceId == nil ? deviceOf(participant.userId) : participant.deviceName
}

private func receiversAmong(_ participants: [CallParticipant]) -> [String] {
    participants.filter { [.joined, .invited, .ringing].contains($0.state) }.map(deviceOf)
}

private func askIn(_ said: [String: JSONValue]) throws -> KeyAsk {
    KeyAsk(
        userId: try said.needId("userId"),
        deviceId: try said.needId("deviceId"),
        displayName: said.text("displayName") ?? "",
        publicKeyHash: try said.needText("publicKeyHash"),
        nonce: said.text("nonce")
    )
}

private func failureIn(_ said: [String: JSONValue]) throws -> CallsignError {
    CallsignError(try said.needText("code"), said.text("message") ?? "", members: said["members"]?.object ?? [:])
}
