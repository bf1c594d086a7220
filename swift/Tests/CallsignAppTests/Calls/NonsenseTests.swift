import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// A server that tells nonsense: stories have none, as each language reads it in its own way.
final class NonsenseTests: XCTestCase {
    private var player: StoryPlayer!

    override func setUpWithError() throws { player = try StoryPlayer(Stories()) }

    @discardableResult private func play(_ input: String, at: Int = 0) throws -> [String] {
        let step: JSONValue = ["at": JSONValue(at), "in": try known(JSONValue(input), input)]
        return try player.play(step).compactMap { $0.string ?? $0.object?.keys.first }
    }

    private func record(version: Int = 2, keyEpoch: Int = 1, keyRotationIn: Int = 600) -> String {
        """
        {
            "callId": "1", "version": \(version), "status": "active", "isVideo": false, "isOnGoing": false, "initiatorId": "2",
            "hostUserId": "2", "keyEpoch": \(keyEpoch), "keyRotationIn": \(keyRotationIn), "ringTimeoutIn": 60,
            "media": { "kind": "client" },
            "participants": [
                { "userId": "1", "deviceId": "10", "state": "joined", "invitedBy": "2", "invitedAt": "1970-01-01T00:00:00Z" },
                { "userId": "2", "deviceId": "20", "state": "joined", "invitedBy": "2", "invitedAt": "1970-01-01T00:00:00Z" }
            ]
        }
        """
    }

    private func connect() throws {
        try play(#"{ "on": "restarted", "kept": { "callId": "1" } }"#)
        try play(#"{ "on": "connected", "connection": 1, "kept": { "callId": "1" } }"#)
    }

    private func assertInvalid(_ act: () throws -> Void, line: UInt = #line) {
        XCTAssertThrowsError(try act(), line: line) { XCTAssertTrue($0.hasCode("ANSWER_INVALID"), "\($0)", line: line) }
    }

    func testAMessageThatWaitsForTheCallOfBeforeARestartFailsAlone() throws {
        try connect()
        try play(#"{ "on": "queue", "event": { "type": "participant_request_rejoin", "callId": "1" } }"#)
        try play(#"{ "on": "queue", "event": { "type": "call_moved", "callId": "1", "version": 1 } }"#)
        try play(#"{ "on": "done", "of": "GET call/pending", "body": { "items": [] } }"#)
        let acts = try play(#"{ "on": "done", "of": "GET call/1", "body": \#(record()) }"#)
        let settled = ["participant_request_rejoin: ANSWER_INVALID", "call_moved", "connected"].map { "settle \($0)" }
        XCTAssertEqual(acts.filter { $0.hasPrefix("settle") }, settled)
        XCTAssertEqual(player.calls, ["1 rejoining"])
    }

    func testATimeThatNoNumberOfMillisecondsCanTellIsInvalid() {
        assertInvalid { _ = try timeMsOf("+999999999-01-01T00:00:00Z") }
        let members = ["type": "call_invitation", "sentAt": "0", "expiresAt": "+999999999-01-01T00:00:00Z"]
        guard case .over = judgePush(members, deviceId: 10, serverNowMs: 0, isSeen: false) else { return XCTFail("it rings") }
    }

    func testAnInvitationByPushThatMakesNoSenseWaitsForTheNextConnection() {
        XCTAssertNil(invitationIn(["type": "call_invitation", "callId": "1", "encryptedAESKey": "text A"]))
    }

    func testADurationThatIsTooLongForASumDoesNotComeAtOnce() throws {
        try connect()
        try play(#"{ "on": "done", "of": "GET call/pending", "body": { "items": [] } }"#)
        let body = record(keyRotationIn: .max / 1_000)
        try play(#"{ "on": "done", "of": "GET call/1", "body": \#(body) }"#, at: 5_000)
        XCTAssertGreaterThan(try known(player.nextMs, "next"), 5_000)
        try play(#"{ "on": "done", "of": "POST call/1/request-rejoin", "body": { "expiresIn": \#(Int.max / 1_000) } }"#)
        XCTAssertGreaterThan(try known(player.nextMs, "next"), 5_000)
    }

    /// A sum that is too large would end the app.
    func testNumbersThatAreTooLargeForASumAreInvalid() throws {
        for text in [record(keyEpoch: .max), record(version: .min)] {
            assertInvalid { _ = try callRecordOf(known(objectIn(text), "record")) }
        }
        var invitation: [String: JSONValue] = [
            "callId": "1", "callerId": "2", "encryptedAESKey": "text A", "keyEpoch": 1, "sentAt": 0,
            "expiresAt": "9999-12-31T23:59:59Z",
        ]
        XCTAssertNoThrow(try invitationOf(invitation))
        invitation["sentAt"] = JSONValue(.min)
        assertInvalid { _ = try invitationOf(invitation) }
    }

    /// The Kelvin sign is K, as Swift compares texts: two calls would be one.
    func testACallsIdIsInASCII() throws {
        XCTAssertEqual("\u{212a}", "K")
        let call = record().replacingOccurrences(of: #""callId": "1""#, with: "\"callId\": \"\u{212a}\"")
        assertInvalid { _ = try callRecordOf(known(objectIn(call), "record")) }
        let event = "{ \"type\": \"call_ended\", \"callId\": \"\u{212a}\" }"
        XCTAssertEqual(try play(#"{ "on": "queue", "event": \#(event) }"#), ["settle call_ended"])
    }
}
