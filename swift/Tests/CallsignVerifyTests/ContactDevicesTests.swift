import TestSupport
import XCTest

@testable import CallsignVerify

/// What no story of a log tells: ids that are none, and lookups of an app's own.
final class ContactDevicesTests: XCTestCase {
    private let contacts = ContactDevices(lookups: NoLookups(), store: MemoryKnownUserStore()) { _, _ in [] }

    private func device(_ deviceId: String) -> NamedDevice {
        NamedDevice(deviceId: deviceId, keyAlgorithm: "P-256", publicKey: "AAAA", publicKeyHash: "")
    }

    func testAnIdThatIsNoUint64InDecimalIsAnError() async throws {
        let ids = [("", "5"), ("+7", "5"), ("07", "5"), ("7", "five"), ("7", "18446744073709551616"), ("7", "\u{661}")]
        for (userId, deviceId) in ids {
            let user = NamedUser(userId: userId, devices: [device(deviceId)])
            do {
                _ = try await contacts.verify(user)
                XCTFail("\(userId) \(deviceId)")
            } catch let error as LogError {
                XCTAssertEqual(.malformed, error.code)
            }
        }
    }

    func testADeviceThatWasNotLookedUpIsNotVerified() async throws {
        let outcome = try await contacts.verify(NamedUser(userId: "7", devices: [device("5"), device("6")]))
        XCTAssertEqual(.unanswered(Unanswered("0 of 2 devices were looked up")), outcome)
        let vectors = try readVectors("device-list")
        let first = try known(vectors.list("lists").first, "a list")
        let listed = NamedUser(
            userId: try first.text("user_id"), devices: [], deviceList: encodeBase64(try first.hex("hex")), deviceListHash: "")
        let other = try await contacts.verify(listed)
        XCTAssertEqual(.unanswered(Unanswered("0 of 1 devices were looked up")), other)
    }

    func testALinkOfAnotherPersonOrWithoutAListIsRefused() async throws {
        let person = ListedPerson(userId: 7, listHash: "")
        for (user, detail) in [
            (NamedUser(userId: "8", devices: []), "the link is of user 7"),
            (NamedUser(userId: "7", devices: []), "the device list is left out"),
        ] {
            let outcome = try await contacts.verifyShared(user, person)
            XCTAssertEqual(.refused(Refusal(.deviceList, detail)), outcome)
        }
    }

    func testChangesOfDevicesAreToldByTheirKeys() {
        let before = [KnownDevice(deviceId: "1", keyHash: "a"), KnownDevice(deviceId: "2", keyHash: "b")]
        let now = [KnownDevice(deviceId: "2", keyHash: "c"), KnownDevice(deviceId: "3", keyHash: "d")]
        let expected = [
            DeviceEvent(.replaced, deviceId: "2"), DeviceEvent(.added, deviceId: "3"), DeviceEvent(.removed, deviceId: "1"),
        ]
        XCTAssertEqual(expected, changesOf(before, now, added: .added, replaced: .replaced))
        XCTAssertEqual([], changesOf(now, now, added: .added, replaced: .replaced))
    }
}

/// Looks nothing up.
private struct NoLookups: KeyLookups {
    func lookUpAll(_ devices: [DeviceToLookUp]) async throws -> [Outcome<VerifiedKey>] { [] }

    func checkOwnKeys(_ device: OwnDevice) async throws -> Outcome<OwnKeysReport> { .unanswered(Unanswered("nothing")) }

    func verifyAbsence(userId: UInt64, deviceId: UInt64, absent: AbsentList?) async throws -> Outcome<Absence> {
        .holds(Absence(completeness: .unindexed))
    }
}
