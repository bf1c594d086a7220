import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// The numbers and uses of a device's keys.
final class KeyOctetsTests: XCTestCase {
    func testAKeyHasOneNumberAndOneCallEpochAndSet() async throws { try await Self.haveOneUse() }

    @CallsignActor private static func haveOneUse() throws {
        let (keys, opened, use) = (KeyOctets(), makeCallKey(), KeyBinding(callId: "1", epoch: 1))
        XCTAssertEqual(try keys.put(1, opened, use, keyMembers: "a set"), 1)
        XCTAssertEqual(try keys.put(2, opened, use, keyMembers: "a set"), 1)
        let others = [
            (KeyBinding(callId: "2", epoch: 1), "a set"), (KeyBinding(callId: "1", epoch: 2), "a set"), (use, "another set"),
        ]
        for (binding, set) in others { assertReused { _ = try keys.put(3, opened, binding, keyMembers: set) } }
        XCTAssertEqual(keys.copyOf(1), opened)
        XCTAssertNil(keys.copyOf(3))
    }

    func testAKeyThatWasWipedDoesNotComeAgainForAnotherEpochAndOneThatWasMadeHereHasAUseToo() async throws {
        try await Self.comeOnce()
    }

    @CallsignActor private static func comeOnce() throws {
        let (keys, opened, use) = (KeyOctets(), makeCallKey(), KeyBinding(callId: "1", epoch: 1))
        let next = KeyBinding(callId: "1", epoch: 2)
        _ = try keys.put(1, opened, use, keyMembers: "a set")
        keys.wipe(1)
        assertReused { _ = try keys.put(2, opened, next, keyMembers: "a set") }
        keys.make(3)
        let made = try known(keys.copyOf(3), "made")
        try keys.bind(made, use, keyMembers: "a set")
        assertReused { _ = try keys.put(4, made, next, keyMembers: "a set") }
    }

    func testAnEpochsKeyIsWipedForAllWhoHoldIt() async throws { try await Self.wipe() }

    @CallsignActor private static func wipe() throws {
        let (keys, opened, use) = (KeyOctets(), makeCallKey(), KeyBinding(callId: "1", epoch: 1))
        let device = try KeyHolder(userId: 1, deviceId: 2, publicKey: SoftwareDeviceKeys.generate().publicKey)
        let set = KeySet(keyMembers: try keyMembersOf([device]), members: [device.name])
        _ = try keys.put(1, opened, use, keyMembers: set.keyMembers)
        let held = HeldKey(epoch: 1, key: 1, fromUserId: 1, set: set)
        let shown = try known(keys.epochKey("1", held), "key")
        XCTAssertEqual(shown.key, opened)
        XCTAssertEqual(shown.fingerprint, try fingerprintOf(opened, setHash: hashOfSet(set.keyMembers), binding: use))
        XCTAssertEqual(keys.epochKey("1", held), shown)
        let copy = shown.key
        keys.wipe(1)
        XCTAssertEqual(shown.key, [UInt8](repeating: 0, count: 32))
        XCTAssertNil(shown.octets)
        XCTAssertNil(keys.epochKey("1", held))
        XCTAssertEqual(copy, opened)
    }

    private static func assertReused(_ act: () throws -> Void) {
        XCTAssertThrowsError(try act()) { XCTAssertEqual(($0 as? CallsignError)?.code, "CALL_KEY_REUSED") }
    }
}
