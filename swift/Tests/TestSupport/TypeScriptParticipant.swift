import CallsignVerify
import Foundation

/// A user of `@callsign/sdk/app`, as a program of Node: see participant.mjs beside the tests of Kotlin.
public final class TypeScriptParticipant: Sendable {
    public struct Failed: Error, Equatable {
        public let code: String
    }

    private struct State {
        var count = 0
        var waiting: [String: CheckedContinuation<JSONValue, any Error>] = [:]
        var hasEnded = false
    }

    private let process: Locked<Process>
    private let lines: FileHandle
    private let state = Locked(State())

    public init(_ url: String) throws {
        let program = projectRoot.appendingPathComponent("kotlin/callsign-app/src/test/node/participant.mjs")
        let process = nodeProcess([program.path], ["CALLSIGN_URL": url])
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        self.process = Locked(process)
        lines = input.fileHandleForWriting
        let answers = output.fileHandleForReading
        let state = state
        Thread.detachNewThread { Self.read(answers, state) }
    }

    /// What the act gives. Throws `Failed` with the code of its error.
    @discardableResult
    public func tell(_ act: String, _ args: JSONValue...) async throws -> JSONValue { try await tell(act, args) }

    public func text(_ act: String, _ args: JSONValue...) async throws -> String {
        try known(await tell(act, args).string, act)
    }

    /// State, fingerprint and epoch of a call.
    public func view(_ act: String, _ args: JSONValue...) async throws -> JSONValue { try await tell(act, args) }

    public func close() {
        try? lines.close()
        process.with { $0.waitUntilExit() }
    }

    private func tell(_ act: String, _ args: [JSONValue]) async throws -> JSONValue {
        try await withCheckedThrowingContinuation { answer in
            let id = state.with { state in
                state.count += 1
                if !state.hasEnded { state.waiting["\(state.count)"] = answer }
                return state.hasEnded ? nil : "\(state.count)"
            }
            guard let id else { return answer.resume(throwing: Failed(code: "the participant has ended")) }
            let line: JSONValue = ["id": .string(id), "act": .string(act), "args": .array(args)]
            // Ordered, and whole, since nobody else writes while this does.
            state.with { _ in lines.write(Data("\(line.text)\n".utf8)) }
        }
    }

    private static func read(_ answers: FileHandle, _ state: Locked<State>) {
        var unread: [UInt8] = []
        while true {
            let more = answers.availableData
            if more.isEmpty { break }
            unread += more
            while let end = unread.firstIndex(of: 0x0a) {
                take(JSONValue(octets: Array(unread[..<end])), state)
                unread.removeSubrange(...end)
            }
        }
        let left = state.with { state in
            state.hasEnded = true
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for each in left { each.resume(throwing: Failed(code: "the participant has ended")) }
    }

    private static func take(_ answer: JSONValue?, _ state: Locked<State>) {
        guard let answer, let id = answer["id"]?.string,
            let waiting = state.with({ $0.waiting.removeValue(forKey: id) })
        else { return }
        if let error = answer["error"]?.string { waiting.resume(throwing: Failed(code: error)) } else {
            waiting.resume(returning: answer["value"] ?? .null)
        }
    }
}
