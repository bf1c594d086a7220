// One user of this package. It reads its instructions as lines of JSON. Each line has an `id`, an `act` and its `args`; each answer the same
// `id`, and a `value` or an `error`: as kotlin/callsign-app/src/test/node/participant.mjs has it. The server is `CALLSIGN_URL`,
// and speaks STOMP over TCP at `CALLSIGN_STOMP_TCP`.

import CallsignApp
import CallsignVerify
import Foundation
import TestSupport

struct NoAct: Error {}

@CallsignActor final class Participant {
    private let server: Server
    private let url: String
    private let storage = MemoryAppStorage()
    private var app: Callsign?

    /// Calls that an act was about, those that have ended too.
    private var calls: [String: Call] = [:]

    init(url: String, stompTCP: String) throws {
        self.url = url
        server = try Server(url, sockets: TCPStompTransport(stompTCP), language: "en")
    }

    private var me: Callsign {
        get throws { try known(app, "app") }
    }

    private func open() async throws -> Callsign {
        let opened = Callsign(server: server, pins: try await developmentPins(url), storage: storage)
        app = opened
        calls = [:]
        return opened
    }

    func perform(_ act: String, _ args: [String]) async throws -> JSONValue {
        switch act {
        case "signIn":
            let url = url
            return try await .string("\(open().signIn(args[0], displayName: args[1]) { _ in try await sentCode(url, args[0]) }.userId)")
        case "shareLink": return .string(try await me.contacts.shareLink())
        case "befriendByLink": try await me.contacts.requestByLink(args[0])
        case "accept": try await me.contacts.accept(userId(args[0]))
        case "code": return .string(try await me.contacts.comparisonCode(userId(args[0])))
        case "call": return view(try await me.call(userId(args[0])))
        case "ringing":
            for await call in try me.ringing { return .string(call.callId) }
        case "close": await (try me).close()
        case "resume": _ = try await open().resume()
        default: return try await perform(act, on: call(args[0]), Array(args.dropFirst()))
        }
        return .null
    }

    private func perform(_ act: String, on call: Call, _ args: [String]) async throws -> JSONValue {
        switch act {
        case "answer":
            try await call.answer()
            return view(call)
        case "until":
            for await state in call.state.values where state.name == args[0] { break }
            for await key in call.key.values where (key?.epoch ?? 0) >= (Int(args.dropFirst().first ?? "") ?? 0) { break }
            return view(call)
        case "renewKey": try await call.renewKey()
        case "end": try await call.end()
        case "leave": try await call.leave()
        case "ending":
            for await state in call.state.values where state == .ended { break }
            return .string("\(try known(call.ending, "ending"))")
        default: throw NoAct()
        }
        return .null
    }

    private func userId(_ text: String) throws -> UInt64 { try known(UInt64(text), text) }

    /// Waits until it is there.
    private func call(_ callId: String) async throws -> Call {
        if let call = calls[callId] { return call }
        for await all in try me.calls.values {
            guard let call = all.first(where: { $0.callId == callId }) else { continue }
            calls[callId] = call
            return call
        }
        throw NoAct()
    }

    private func view(_ call: Call) -> JSONValue {
        [
            "callId": .string(call.callId), "state": .string(call.state.value.name),
            "fingerprint": call.fingerprint.map { .string($0) } ?? .null,
            "epoch": call.key.value.map { JSONValue($0.epoch) } ?? .null,
            "isVerified": call.isVerified.map { .bool($0) } ?? .null,
        ]
    }
}

extension CallState {
    fileprivate var name: String { "\(self)" }
}

func answer(_ line: JSONValue, of participant: Participant) async throws -> JSONValue {
    let id = try line.get("id")
    do {
        let args = try line.list("args").map { try known($0.string ?? $0.int.map { "\($0)" }, "args") }
        return ["id": id, "value": try await participant.perform(line.text("act"), args)]
    } catch {
        return ["id": id, "error": .string((error as? CallsignError)?.code ?? "\(error)")]
    }
}

let environment = ProcessInfo.processInfo.environment
let participant = try await Participant(
    url: known(environment["CALLSIGN_URL"], "CALLSIGN_URL"), stompTCP: known(environment["CALLSIGN_STOMP_TCP"], "CALLSIGN_STOMP_TCP"))
// It waits for a line here, on the main thread, and works on others.
while let text = readLine() {
    Task.detached { [participant] in
        let answer = try await answer(known(JSONValue(text), text), of: participant)
        FileHandle.standardOutput.write(Data("\(answer.text)\n".utf8))
    }
}
