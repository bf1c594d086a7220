import CallsignVerify
import XCTest

@testable import CallsignApp

/// The key of an invitation, and one that a server sends in its place while the first is being opened.
final class InvitationKeyTests: XCTestCase {
    private let turn = Turn(Device(userId: 1, deviceId: 10), nowMs: 0)
    private let key = HeldKey(
        epoch: 0, key: 1, fromUserId: 2, set: KeySet(keyMembers: "", members: ["1_10", "2_20"]))

    private func ring(_ text: String) {
        let caller = Person(userId: 2, displayName: "Ann")
        turn.ring(
            Ringing(
                callId: "1", isVideo: false, isOnGoing: false, caller: caller, text: text, epoch: 1,
                from: Sender(userId: 2, deviceId: 20), invitedAtMs: 0, untilMs: 60_000))
    }

    private func renew(_ text: String) throws {
        let event: [String: JSONValue] = [
            "encryptedAESKey": .string(text), "epoch": 2, "fromUserId": "2", "fromDeviceId": "20",
        ]
        try turn.onRenewedKey("1", event, try XCTUnwrap(turn.call("1")?.phase.rings))
    }

    func testTheOutcomeOfTheFirstDoesNotCountForTheSecond() throws {
        ring("Key")
        try renew("Other")
        XCTAssertFalse(turn.onInvitedOpened("1", InvitedKey(epoch: 1, text: "Key"), key))
        XCTAssertEqual(turn.call("1")?.invited?.state, .opening)
        XCTAssertTrue(turn.onInvitedOpened("1", InvitedKey(epoch: 2, text: "Other"), key))
        XCTAssertEqual(turn.call("1")?.invited?.key?.epoch, 2)
    }

    /// Swift takes the sign of kelvin for the letter, and the server may send either.
    func testAnotherSpellingIsAnotherText() throws {
        let other = "\u{212a}ey"
        XCTAssertEqual("Key", other)
        ring("Key")
        try renew(other)
        XCTAssertFalse(turn.onInvitedOpened("1", InvitedKey(epoch: 2, text: "Key"), key))
    }

    func testAPersonIsNamedByADevicesNameAlone() {
        XCTAssertEqual(userIdIn("7_8"), 7)
        for strange in ["", "_", "+7_8", "07_8", "７_8", "18446744073709551616_1"] { XCTAssertNil(userIdIn(strange), strange) }
    }
}
