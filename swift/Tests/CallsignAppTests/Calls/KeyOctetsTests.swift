import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// The numbers and uses of a device's keys.
final class KeyOctetsTests: XCTestCase {
    private let opened = makeCallKey()
    private let use = KeyBinding(callId: "1", epoch: 1)

    private func refusalOf(_ act: () throws -> Void) -> String? {
        do {
            try act()
            return nil
        } catch {
            return (error as? CallsignError)?.code
        }
    }

    @CallsignActor func testAKeyHasOneNumberAndOneCallEpochAndSet() async throws {
        let keys = KeyOctets()
        XCTAssertEqual(try keys.put(1, opened, use, keyMembers: "a set"), 1)
        XCTAssertEqual(try keys.put(2, opened, use, keyMembers: "a set"), 1)
        let others = [
            (KeyBinding(callId: "2", epoch: 1), "a set"), (KeyBinding(callId: "1", epoch: 2), "a set"), (use, "another set"),
        ]
        for (binding, set) in others {
            XCTAssertEqual(refusalOf { _ = try keys.put(3, opened, binding, keyMembers: set) }, "CALL_KEY_REUSED")
        }
        XCTAssertEqual(keys.copyOf(1), opened)
        XCTAssertNil(keys.copyOf(3))
    }

    @CallsignActor func testAKeyThatWasWipedDoesNotComeAgainForAnotherEpochAndOneThatWasMadeHereHasAUseToo() async throws {
        let keys = KeyOctets()
        let next = KeyBinding(callId: "1", epoch: 2)
        _ = try keys.put(1, opened, use, keyMembers: "a set")
        keys.wipe(1)
        XCTAssertEqual(refusalOf { _ = try keys.put(2, opened, next, keyMembers: "a set") }, "CALL_KEY_REUSED")
        keys.make(3)
        let made = try known(keys.copyOf(3), "made")
        try keys.bind(made, use, keyMembers: "a set")
        XCTAssertEqual(refusalOf { _ = try keys.put(4, made, next, keyMembers: "a set") }, "CALL_KEY_REUSED")
    }

    @CallsignActor func testAnEpochsKeyIsWipedForAllWhoHoldIt() async throws {
        let keys = KeyOctets()
        let device = try KeyHolder(userId: 1, deviceId: 2, publicKey: SoftwareDeviceKeys.generate().publicKey)
        let set = KeySet(keyMembers: try keyMembersOf([device]), members: [device.name])
        _ = try keys.put(1, opened, use, keyMembers: set.keyMembers)
        let held = HeldKey(epoch: 1, key: 1, fromUserId: 1, set: set)
        let shown = try known(keys.epochKey("1", held), "key")
        XCTAssertEqual(shown.key, opened)
        XCTAssertEqual(
            shown.fingerprint, try fingerprintOf(opened, setHash: hashOfSet(set.keyMembers), binding: use))
        XCTAssertEqual(keys.epochKey("1", held), shown)
        keys.wipe(1)
        XCTAssertEqual(shown.key, [UInt8](repeating: 0, count: 32))
        XCTAssertNil(shown.octets)
        XCTAssertNil(keys.epochKey("1", held))
    }
}
