import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// The calls of a device by the stories that `@callsign/sdk/app` plays too.
final class DeviceCallStoriesTests: XCTestCase {
    func testTheActsOfEachStoryAreAsListedAndItEndsWhereAPersonCanLeave() throws {
        let stories = try Stories()
        XCTAssertGreaterThan(stories.all.count, 100)
        for story in stories.all {
            let difference = try differenceIn(story, of: stories) { try decide($0, $1, nowMs: $2) }
            XCTAssertNil(difference, story["name"]?.string ?? "")
        }
    }

    /// As `test/support/device-bugs.ts` has them.
    func testAMistakeMadeOnPurposeIsToldByAStory() throws {
        let stories = try Stories()
        for (name, mistake) in mistakes {
            // A story that does not go on, since an act is missing, tells it too.
            let isTold = stories.all.contains { story in
                (try? differenceIn(story, of: stories, by: mistake) == nil) != true
            }
            XCTAssertTrue(isTold, name)
        }
    }
}

/// Where the story goes another way than it is told; nil where it does not.
private func differenceIn(_ story: JSONValue, of stories: Stories, by decide: @escaping Decide) throws -> String? {
    let player = try StoryPlayer(stories, decide)
    if let given = story["given"]?.string { try player.begin(given) }
    for (at, step) in story.list("steps").enumerated() {
        let acts = JSONValue.array(try player.play(step))
        let listed = JSONValue.array(step.list("acts"))
        if acts != listed { return "step \(at), \(step["in"]?.text ?? ""):\n\(acts.text)\ninstead of\n\(listed.text)" }
    }
    let ends: [(JSONValue?, JSONValue)] = [
        (story["calls"], .array(player.calls.map(JSONValue.string))),
        (story["next"], player.nextMs.map { JSONValue($0) } ?? .null),
    ]
    for (listed, end) in ends where listed != end { return "\(end.text) at the end instead of \(listed?.text ?? "")" }
    try player.leaveAll()
    return player.rest == "calls [], next never, not answered once [], keys []" ? nil : player.rest
}

private var mistakes: [(String, Decide)] {
    [
        ("a moved call kept", unheard("call_moved")),
        ("an answer elsewhere overlooked", unheard("call_answered_elsewhere")),
        ("a new key overlooked", unheard("key_update")),
        ("asks for the key not heard", unheard("participant_request_rejoin")),
        (
            "a topic that is not heard",
            { before, input, nowMs in
                if case .topic = input { return CallDecision(device: before, acts: []) }
                return try decide(before, input, nowMs: nowMs)
            }
        ),
        ("a wrong epoch", acts { _, act in [isRequest(act, "keys") ? withEpoch0(act) : act] }),
        ("a leave that is not sent", acts { _, act in isRequest(act, "leave") ? [] : [act] }),
        ("nothing is kept", acts { _, act in if case .keep = act { [] } else { [act] } }),
        (
            "a key that is wiped too soon",
            acts { _, act in
                guard case .emit(_, .key(let key)) = act else { return [act] }
                return [act, .wipe(keys: [key.key])]
            }
        ),
        ("keys that are never wiped", acts { _, act in if case .wipe = act { [] } else { [act] } }),
        (
            "a message settled twice",
            acts { input, act in isSettled(act) && isQueued(input, "call_cancelled") ? [act, act] : [act] }
        ),
        (
            "a message never settled",
            acts { input, act in isSettled(act) && isQueued(input, "call_missed") ? [] : [act] }
        ),
        (
            "a ring without an end",
            changed { call in
                guard case .ringingIn(var rings) = call.phase else { return }
                rings.untilMs = .max
                call.phase = .ringingIn(rings)
            }
        ),
        (
            "an ask that is not repeated",
            changed { call in
                if case .pausing = call.phase.ask { call.phase = call.phase.asking(.returning) }
            }
        ),
        (
            "the call of the other of two overlooked",
            { before, input, nowMs in
                guard case .failed(let act, let failure) = input, failure.hasCode("CALL_CROSSED") else {
                    return try decide(before, input, nowMs: nowMs)
                }
                let other = CallInput.failed(act: act, failure: CallsignError("CALL_NOT_FOUND", ""))
                return try decide(before, other, nowMs: nowMs)
            }
        ),
        (
            "a connection that is not told",
            acts { input, act in
                if case .connected = input, case .request = act { [] } else { [act] }
            }
        ),
    ]
}

/// The message is settled, and does nothing.
private func unheard(_ type: String) -> Decide {
    { before, input, nowMs in
        guard let command = input.command, isQueued(input, type) else { return try decide(before, input, nowMs: nowMs) }
        return CallDecision(device: before, acts: [.settle(command: command, callId: nil, error: nil)])
    }
}

private func acts(_ become: @escaping (CallInput, CallAct) -> [CallAct]) -> Decide {
    { before, input, nowMs in
        var decision = try decide(before, input, nowMs: nowMs)
        decision.acts = decision.acts.flatMap { become(input, $0) }
        return decision
    }
}

private func changed(_ become: @escaping (inout DeviceCall) -> Void) -> Decide {
    { before, input, nowMs in
        var decision = try decide(before, input, nowMs: nowMs)
        for at in decision.device.calls.indices { become(&decision.device.calls[at]) }
        return decision
    }
}

private func isQueued(_ input: CallInput, _ type: String) -> Bool {
    if case .queue(_, let event) = input { event.text("type") == type } else { false }
}

private func isSettled(_ act: CallAct) -> Bool {
    if case .settle = act { true } else { false }
}

private func isRequest(_ act: CallAct, _ name: String) -> Bool {
    if case .request(let request) = act { request.path.hasSuffix("/\(name)") } else { false }
}

private func withEpoch0(_ act: CallAct) -> CallAct {
    guard case .request(var request) = act else { return act }
    request.body?["epoch"] = 0
    return .request(request)
}
