import CallsignVerify
import TestSupport

@testable import CallsignApp

/// Plays stories of `test/vectors/device-connection.jsonl`, whose first line says how one is read.
struct ConnectionStoryPlayer {
    private let situations: [String: JSONValue]
    private var connection = DeviceConnection()
    private var nowMs = 0
    private var unanswered: [(act: Int, name: String)] = []
    private var commands: [String] = []
    private var sockets: [Int] = []
    private var answered: [String] = []

    init(_ situations: [String: JSONValue]) { self.situations = situations }

    var phase: String { "\(connection.phase)".prefix { $0 != "(" }.lowercased() }
    var nextMs: Int? { connection.nextDeadlineMs }

    mutating func begin(_ story: JSONValue) throws {
        guard let given = story.textOrNil("given") else { return }
        let situation = try known(situations[given], given)
        try begin(situation)
        for step in situation.list("steps") { try play(step) }
    }

    /// Returns the acts, told; none of steps that are repeated.
    @discardableResult
    mutating func play(_ step: JSONValue) throws -> [String] {
        guard let times = step.find("times")?.int else { return try playOnce(step) }
        for count in 1...times {
            for each in step.list("steps") { _ = try playOnce(numbered(each, "\(count)")) }
        }
        return []
    }

    /// Disconnects and lets every act fail. Returns the rest, which should be nothing.
    mutating func leave() throws -> [String] {
        _ = try playOnce(["in": ["on": "disconnect"]])
        while !unanswered.isEmpty { _ = try playOnce(["in": ["on": "failed", "of": "", "failure": ["code": "OFFLINE"]]]) }
        let left = connection.watches.map { "\($0)" } + connection.waiting.map { "\($0)" }
            + connection.queues.flatMap { $0.waiting.map { "\($0)" } }
        let notOnce = commands.filter { name in answered.filter { $0 == name }.count != 1 }
        return left + notOnce + (phase == "off" ? [] : [phase]) + (nextMs.map { ["\($0)"] } ?? [])
    }

    private mutating func playOnce(_ step: JSONValue) throws -> [String] {
        nowMs = step.find("at").flatMap { $0.int ?? $0.string.flatMap { Int($0) } } ?? nowMs
        let random = step.find("random").flatMap { Double($0.text) } ?? 0.5
        let decision = connection.decide(try input(of: step.get("in")), nowMs: nowMs, random: random)
        connection = decision.connection
        return decision.acts.map { told($0) }
    }

    private mutating func input(of said: JSONValue) throws -> ConnectionInput {
        let on = try said.text("on")
        switch on {
        case "connect": return .connect
        case "disconnect": return .disconnect(command: command(on))
        case "watch": return .watch(command: command(on), destination: try said.text("destination"))
        case "unwatch": return .unwatch(watch: try said.text("watch"))
        case "send": return .send(command: command(on), destination: try said.text("destination"), body: try said.text("body"))
        case "online": return .online
        case "over": return .over
        case "connected":
            return .connected(socket: try socket(said), device: said.textOrNil("device"), serverMs: try said.number("serverMs"))
        case "message":
            return .message(
                .init(
                    socket: try socket(said),
                    subscription: try said.text("subscription"),
                    ack: said.textOrNil("ack"),
                    event: try said.get("event")
                )
            )
        case "closed":
            return .closed(
                .init(
                    socket: try socket(said),
                    code: try said.number("code"),
                    reason: try said.text("reason"),
                    retryAfterMs: try said.number("retryAfterMs"),
                    failure: try failure(in: said)
                )
            )
        case "done":
            return .done(act: try answer(said), token: said.textOrNil("token"), recovered: said.textOrNil("recovered"))
        case "failed": return .failed(act: try answer(said), failure: try known(failure(in: said), "failure"))
        case "time": return .time
        default: throw StoryError(fault: "no input \(on)")
        }
    }

    private func failure(in said: JSONValue) throws -> ConnectionFailure? {
        try said.find("failure").map { ConnectionFailure(code: try $0.text("code")) }
    }

    private func socket(_ said: JSONValue) throws -> Int { sockets[try said.number("socket") - 1] }

    private mutating func answer(_ said: JSONValue) throws -> Int {
        let of = try said.text("of")
        guard let at = unanswered.lastIndex(where: { $0.name.hasPrefix(of) }) else {
            throw StoryError(fault: "nothing unanswered begins with \(of)")
        }
        return unanswered.remove(at: at).act
    }

    private mutating func command(_ on: String) -> Int {
        let count = commands.filter { $0.prefix { $0 != " " } == on }.count
        commands.append(count == 0 ? on : "\(on) \(count + 1)")
        return commands.count
    }

    private mutating func told(_ act: ConnectionAct) -> String {
        if case .open(let socket, _) = act { sockets.append(socket) }
        if case .settle(let command, _, _) = act { answered.append(commands[command - 1]) }
        let name = name(of: act)
        if case .asking(let number, _) = act { unanswered.append((number, name)) }
        return name
    }

    private func name(of act: ConnectionAct) -> String {
        switch act {
        case .asking(_, let question): return name(of: question)
        case .endSession(let failure): return "end session \(failure.code)"
        case .trouble(let failure): return "trouble \(failure.code)"
        case .hearTime(let serverMs): return "hear time \(serverMs)"
        case .open(let socket, let token): return "open \(number(of: socket)) with \(token)"
        case .tell(let socket, let command, let headers): return "\(frame(socket, command, headers)), no receipt"
        case .abandon(let socket): return "abandon \(number(of: socket))"
        case .topic(let watch, let event): return "\(watch) hears \(event.text)"
        case .settle(let command, let watch, let error):
            return ["settle \(commands[command - 1])", watch, error?.code].compactMap { $0 }.joined(separator: ": ")
        case .state(let state, let failures): return "state \(state.rawValue), failures \(failures)"
        case .ready(let mayHaveMissed): return mayHaveMissed ? "ready, may have missed events" : "ready, has missed nothing"
        }
    }

    private func name(of question: ConnectionQuestion) -> String {
        switch question {
        case .token: return "token"
        case .register: return "register"
        case .renew(let token): return "renew \(token)"
        case .request(let socket, let command, let headers, let body):
            let frame = frame(socket, command, headers)
            return body.isEmpty ? frame : "\(frame) \(body)"
        case .disconnect(let socket): return "disconnect \(number(of: socket))"
        case .handle(let event): return "handle \(event.text("eventId") ?? "")"
        }
    }

    private func frame(_ socket: Int, _ command: String, _ headers: [StompHeader]) -> String {
        let lines = headers.map { "\($0.name):\($0.value)" }
        return "\(number(of: socket)): \(([command] + lines).joined(separator: " "))"
    }

    private func number(of socket: Int) -> Int { (sockets.firstIndex(of: socket) ?? -1) + 1 }
}

/// With the count in the place of each `#`.
private func numbered(_ said: JSONValue, _ count: String) throws -> JSONValue {
    let written = said.text.split(separator: "#", omittingEmptySubsequences: false).joined(separator: count)
    return try known(JSONValue(written), written)
}

/// The lines of a file of stories: `like` stands for the value of that name, and members beside it take the place of its own.
func storyLines(_ name: String) throws -> [JSONValue] {
    var values: [String: JSONValue] = [:]
    return try readLines(name).map { line in
        let said = try expanded(line, values)
        if let name = said.textOrNil("value") { values[name] = try said.get("is") }
        return said
    }
}

private func expanded(_ said: JSONValue, _ values: [String: JSONValue]) throws -> JSONValue {
    switch said {
    case .array(let items): return .array(try items.map { try expanded($0, values) })
    case .object(let members):
        var all: [String: JSONValue] = [:]
        if let like = said.textOrNil("like") { all = try known(values[like]?.object, like) }
        for (name, value) in members where name != "like" { all[name] = try expanded(value, values) }
        return .object(all)
    default: return said
    }
}
