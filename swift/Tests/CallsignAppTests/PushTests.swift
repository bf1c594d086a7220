import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

final class PushTests: XCTestCase {
    private func cases() throws -> [JSONValue] { try readVectors("push").list("cases") }

    private func deviceId() throws -> UInt64 { try known(uint64(readVectors("push").text("device_id")), "device_id") }

    private func members(_ vector: JSONValue) throws -> [String: String] {
        try known(vector.get("members").object, "members").mapValues { try known($0.string, "member") }
    }

    func testEachPushIsShownAsTheVectorsSay() throws {
        for vector in try cases() {
            let members = try members(vector)
            let action = judgePush(
                members, deviceId: try deviceId(), serverNowMs: vector["server_now_ms"]?.int,
                isSeen: vector["is_seen"]?.bool ?? false)
            if case .notice(_, let shown) = action { XCTAssertEqual(shown, members) }
            let name = try vector.text("name")
            XCTAssertEqual(JSONValue.object(words(action)), try vector.get("action"), name)
        }
    }

    func testNothingIsShownOnAPhoneWithoutADevice() throws {
        for vector in try cases() {
            XCTAssertEqual(judgePush(try members(vector), deviceId: nil, serverNowMs: nil, isSeen: false), .nothing)
        }
    }

    func testACallThatEndedForAReasonOfLaterStopsRinging() {
        let members = ["type": "call_cancel", "callId": "1", "reason": "of_later"]
        XCTAssertEqual(
            judgePush(members, deviceId: 1, serverNowMs: nil, isSeen: false),
            .stopRinging(callId: "1", uuid: callUUID("1"), reason: .ended, shows: .nothing))
    }

    func testACallerOfWhomThePushSaysNothingIsAStrangerWithoutAName() {
        let members = ["type": "call_cancel", "callId": "1", "reason": "cancelled"]
        XCTAssertEqual(
            judgePush(members, deviceId: 1, serverNowMs: nil, isSeen: false),
            .stopRinging(
                callId: "1", uuid: callUUID("1"), reason: .cancelled, shows: .missedCall(name: "", isContact: false)))
    }

    func testTheCallOfAPushNamesItsCallerAStrangerWhereItDoesNotSay() throws {
        var members = try known(cases().map(members).first { $0["alias"] == "Mum" }, "alias")
        let mum = Person(userId: 7, displayName: "Ann Ö.", alias: "Mum", isContact: true)
        XCTAssertEqual(invitationIn(members)?.caller, mum)
        for name in ["alias", "isContact", "displayName"] { members[name] = nil }
        XCTAssertEqual(invitationIn(members)?.caller, Person(userId: 7, displayName: "Mum", isContact: false))
    }

    func testTimesThatNoServerSaysRingForNothing() throws {
        let call = try members(known(cases().first, "case"))
        for (name, text) in [
            ("sentAt", "-9223372036854775808"), ("sentAt", "+1"), ("sentAt", "x"), ("sentAt", "9223372036854775808"),
            ("expiresAt", ""), ("expiresAt", "2025-11-24T16:01:00.000"), ("expiresAt", "2025-13-24T16:01:00.000Z"),
        ] {
            let action = judgePush(
                call.merging([name: text]) { $1 }, deviceId: try deviceId(), serverNowMs: nil, isSeen: false)
            guard case .over = action else { return XCTFail("\(name) \(text): \(action)") }
        }
        let action = judgePush(call, deviceId: try deviceId(), serverNowMs: .min, isSeen: false)
        guard case .over = action else { return XCTFail("\(action)") }
    }

    private func words(_ action: PushAction) -> [String: JSONValue] {
        switch action {
        case .ringing(let call, let forMs): words("ringing", words(call), ["forMs": JSONValue(forMs)])
        case .over(let call): words("over", words(call))
        case .stopRinging(let callId, let uuid, let reason, let shows):
            words(
                "stop-ringing",
                [
                    "callId": .string(callId), "uuid": .string(uuid.uuidString.lowercased()),
                    "reason": .string(reason.rawValue), "shows": .object(words(shows)),
                ])
        case .notice(let type, _): words("notice", ["type": .string(type)])
        case .nothing: words("nothing")
        }
    }

    private func words(_ after: AfterRinging) -> [String: JSONValue] {
        switch after {
        case .missedCall(let name, let isContact):
            words("missed-call", ["name": .string(name), "isContact": .bool(isContact)])
        case .quiet(let reason): words("quiet", ["reason": .string(reason.rawValue)])
        case .nothing: words("nothing")
        }
    }

    private func words(_ call: PushedCall) -> [String: JSONValue] {
        [
            "callId": .string(call.callId), "uuid": .string(call.uuid.uuidString.lowercased()),
            "callerId": .string(call.callerId), "callerName": .string(call.callerName),
            "isContact": .bool(call.isContact), "isVideo": .bool(call.isVideo),
        ]
    }

    private func words(_ show: String, _ members: [String: JSONValue]...) -> [String: JSONValue] {
        members.reduce(["show": .string(show)]) { $0.merging($1) { $1 } }
    }
}

/// What PushKit's handler does, for each push of the vectors.
final class CallReportsTests: XCTestCase {
    private let unknown = UUID()

    private func judge(
        _ members: [String: String]?, rings: Bool = false, mustReport: Bool = true, nowMs: Int? = nil
    ) -> VoIPPushAction {
        judgeVoIPPush(
            members, deviceId: 4_294_967_297, serverNowMs: nowMs, rings: { _ in rings }, mustReport: mustReport,
            unknown: unknown)
    }

    private func invitation() throws -> [String: String] {
        let vector = try known(readVectors("push").list("cases").first, "case")
        return try known(vector.get("members").object, "members").mapValues { try known($0.string, "member") }
    }

    private func report(of action: VoIPPushAction) throws -> CallReport {
        if case .report(let report) = action { return report }
        return try known(nil, "\(action)")
    }

    func testACallIsReportedByTheUUIDOfItsId() throws {
        let report = try report(of: judge(invitation()))
        XCTAssertEqual(
            report,
            CallReport(
                uuid: callUUID("6117204471893025"), callId: "6117204471893025", handle: "7", caller: .plain("Ann Ö."),
                isVideo: true, forMs: 60_000, endsAs: nil))
    }

    func testAStrangerIsSaidToBeOne() throws {
        let report = try report(of: judge(invitation().merging(["isContact": "false"]) { $1 }))
        XCTAssertEqual(report.caller, .named("callsign_stranger", argument: "Ann Ö."))
        XCTAssertEqual(report.caller.text(), "Ann Ö., not a contact")
    }

    func testWhateverTheSystemDemandsAReportOfIsReportedAndEndedWhereItDoesNotRing() throws {
        let over = try report(of: judge(invitation(), nowMs: 1_764_003_600_000))
        XCTAssertEqual([over.endsAs], [.unanswered])
        XCTAssertEqual(over.uuid, callUUID("6117204471893025"))
        XCTAssertEqual(try report(of: judge(invitation(), rings: true)).endsAs, nil, "it rings already")
        let others = [nil, [:], try invitation().merging(["deviceId": "5"]) { $1 }, ["type": "call_cancel", "callId": "1"]]
        for members in others {
            let report = try report(of: judge(members))
            XCTAssertEqual([report.endsAs], [.failed])
            XCTAssertEqual(report.uuid, unknown)
            XCTAssertEqual(report.caller.text(), "Incoming call")
        }
        for vector in try readVectors("push").list("cases") {
            let members = try known(vector.get("members").object, "members").mapValues { try known($0.string, "member") }
            _ = try report(of: judge(members))
        }
    }

    func testWithoutTheDemandNothingIsReportedThatIsOverOrRingsAlready() throws {
        let call = try invitation()
        XCTAssertEqual(judge(call, mustReport: false), judge(call))
        for action in [
            judge(call, rings: true, mustReport: false), judge(call, mustReport: false, nowMs: 1_764_003_600_000),
            judge(nil, mustReport: false), judge([:], mustReport: false),
        ] {
            XCTAssertEqual(action, .nothing)
        }
    }

    func testTheSystemHearsWhyACallHasEnded() {
        XCTAssertEqual(
            [StopReason.cancelled, .answeredElsewhere, .declinedElsewhere, .ended].map(SystemEnd.init),
            [.remoteEnded, .answeredElsewhere, .declinedElsewhere, .remoteEnded])
        let endings: [CallEnding] = [.hangup, .missed, .answeredElsewhere, .busyElsewhere, .moved, .keyLost, .left]
        XCTAssertEqual(
            endings.map { SystemEnd($0)?.rawValue }, [2, 3, 4, 5, 4, 1, nil], "the numbers of CXCallEndedReason")
    }
}

/// What Apple's systems hand over, and its words.
final class PushPayloadTests: XCTestCase {
    func testMembersAreTexts() throws {
        let json = #"""
            {"aps":{"alert":{}},"type":"call_invitation","isVideo":true,"isContact":false,"keyEpoch":1,"zero":0,
            "sentAt":1764000000000,"list":[1],"none":null}
            """#
        let payload = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [AnyHashable: Any]
        let texts = [
            "type": "call_invitation", "isVideo": "true", "isContact": "false", "keyEpoch": "1", "zero": "0",
            "sentAt": "1764000000000",
        ]
        XCTAssertEqual(pushMembers(try known(payload, "payload")), texts)
        let swift: [AnyHashable: Any] = ["a": true, "b": 1, "c": "x", 4: "y", "d": 1_764_000_000_000, "e": ["f": 1]]
        XCTAssertEqual(pushMembers(swift), ["a": "true", "b": "1", "c": "x", "d": "1764000000000"])
    }

    func testEachAlertOfTheServerHasItsWords() throws {
        let members: [([String: String], String?)] = [
            (["type": "missed_call", "callerName": "Ann", "isContact": "true"], "Missed call from Ann"),
            (["type": "missed_call", "callerName": "%@"], "Missed call from %@, not a contact"),
            (["type": "call_invitation", "callerName": "Ann", "isContact": "true"], "Ann is calling"),
            (["type": "newFriendRequested", "displayName": "Ann"], "Ann would like to be your contact"),
            (["type": "acceptFriendRequested", "displayName": "Ann"], "Ann is now your contact"),
            (
                ["type": "device_added", "name": "Pixel"],
                "A new device was added to your account: Pixel. If it was not you, remove it."
            ),
            (
                ["type": "session_started", "userAgent": "", "network": "Berlin"],
                "There is a new sign-in to your account: Berlin. If it was not you, end that session."
            ),
            (
                ["type": "session_started", "userAgent": ""],
                "There is a new sign-in to your account. If it was not you, end that session."
            ),
            (["type": "session_revoked"], "You were signed out on this device"),
            (["type": "of_later"], nil), ([:], nil),
        ]
        for (members, text) in members { XCTAssertEqual(wordsOf(members)?.text(), text) }
        for type in ["device_list_reset", "device_push_lost", "session_ending", "sign_in_waiting", "login_method_lost"] {
            let text = try known(wordsOf(["type": type, "name": "X", "userAgent": "X"])?.text(), type)
            XCTAssertTrue(text.contains(" "), text)
        }
    }
}
