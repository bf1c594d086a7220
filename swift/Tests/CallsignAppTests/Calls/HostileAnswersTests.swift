import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Stories in which the server says something odd in one place of each step. A number out of its bounds, or a place in a list
/// that is not there, would end the app; and whatever it says, each command is answered once, and each key is wiped.
final class HostileAnswersTests: XCTestCase {
    func testNoAnswerEndsTheAppOrLeavesAKeyOrACommand() throws {
        let stories = try Stories()
        var dice = Dice(state: 1)
        var invalid = 0
        for story in Array(repeating: stories.all, count: 4).joined() {
            let player = try StoryPlayer(stories) { before, input, nowMs in
                do {
                    return try decide(before, input, nowMs: nowMs)
                } catch {
                    invalid += 1
                    return try decideFailed(before, input, nowMs)
                }
            }
            do {
                if let given = story["given"]?.string { try player.begin(given) }
                for step in story.list("steps") { try player.play(odd(step, &dice)) }
            } catch is StoryError {
                // The device does not do what the story goes on with.
            } catch {
                // The player itself reads an invitation of a push, which a shell drops.
                XCTAssertTrue(error.hasCode("ANSWER_INVALID"), "\(error)")
            }
            try player.leaveAll()
            XCTAssertEqual(
                player.rest, "calls [], next never, not answered once [], keys []", story["name"]?.string ?? "")
        }
        XCTAssertGreaterThan(invalid, 100)
    }
}

/// As the shell does it.
private func decideFailed(_ before: Device, _ input: CallInput, _ nowMs: Int) throws -> CallDecision {
    if case .done(let done) = input {
        return try decide(before, .failed(act: done.act, failure: answerInvalid()), nowMs: nowMs)
    }
    let settled = input.command.map { CallAct.settle(command: $0, callId: nil, error: answerInvalid()) }
    return CallDecision(device: before, acts: settled.map { [$0] } ?? [])
}

/// The same numbers each time (SplitMix64).
private struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

private let oddValues: [JSONValue] = [
    .null, true, "", "x", "_", "-1", [], [.null], [:], "\u{212a}", "1", "joined", "ended", "18446744073709551615",
    "9999-12-31T23:59:59Z", "nan", "inf",
]
private let oddNumbers: [JSONValue] = [
    JSONValue(.max), JSONValue(.min), JSONValue(1 << 53), JSONValue(-1 << 53), -1, 0, .number("1e308"), "inf", "nan",
]

/// The step with something odd in what the server has said.
private func odd(_ step: JSONValue, _ dice: inout Dice) -> JSONValue {
    guard var input = step["in"]?.object, var members = step.object else { return step }
    for name in ["event", "body", "invitation"] {
        if let said = input[name] { input[name] = objectOrEmpty(odd(in: said, &dice)) }
    }
    members["in"] = .object(input)
    return .object(members)
}

private func objectOrEmpty(_ value: JSONValue) -> JSONValue { value.object == nil ? [:] : value }

/// Goes down to some member, and puts something else there or takes it away.
private func odd(in said: JSONValue, _ dice: inout Dice) -> JSONValue {
    switch said {
    case .object(var members) where !members.isEmpty:
        let name = members.keys.sorted()[Int.random(in: 0..<members.count, using: &dice)]
        if Int.random(in: 0..<8, using: &dice) == 0 {
            members[name] = nil
        } else if let member = members[name] {
            members[name] = odd(in: member, &dice)
        }
        return .object(members)
    case .array(var values) where !values.isEmpty:
        let at = Int.random(in: 0..<values.count, using: &dice)
        values[at] = odd(in: values[at], &dice)
        return .array(values)
    case .number where Bool.random(using: &dice): return oddNumbers[Int.random(in: 0..<oddNumbers.count, using: &dice)]
    default: return oddValues[Int.random(in: 0..<oddValues.count, using: &dice)]
    }
}
