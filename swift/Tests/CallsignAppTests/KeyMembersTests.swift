import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

final class KeyMembersTests: XCTestCase {
    private var devices: [KeyHolder] = []
    private var set = ""
    private var octets: [UInt8] = []

    override func setUpWithError() throws {
        let names: [(UInt64, UInt64)] = [(1, 10), (2, 20), (2, 21), (.max, 1)]
        devices = try names.map {
            try KeyHolder(userId: $0.0, deviceId: $0.1, publicKey: SoftwareDeviceKeys.generate().publicKey)
        }
        set = try keyMembersOf(devices.reversed())
        octets = try decodeBase64(set)
    }

    private func assertNoSet(_ what: String, _ act: () throws -> Void) {
        XCTAssertEqual(logErrorCode(act), .malformed, what)
    }

    private func entry(_ number: Int) -> [UInt8] { Array(octets[2 + number * 48..<2 + (number + 1) * 48]) }

    func testASetIsInOneOrderAndComesOutAsItWentIn() throws {
        XCTAssertEqual(try keyMembersOf(devices), set)
        XCTAssertEqual(octets.count, 2 + 4 * 48)
        let read = try readKeyMembers(set)
        XCTAssertEqual(read.map(\.name), devices.map(\.name))
        XCTAssertEqual(read.map(\.userId), devices.map(\.userId))
        XCTAssertEqual(read.map(\.keyHash), devices.map(\.keyHash))
        XCTAssertEqual(try hashOfSet(set), sha256(Array("callsign call members v1\n".utf8), octets))
    }

    func testAChangeMakesTheSetAfterIt() throws {
        let before = try keyMembersOf(Array(devices[..<3]))
        let added = encodeBase64(entry(3))
        let removed = [devices[0].name, devices[2].name]
        XCTAssertEqual(
            try changedSet(before, SetChange(added: added, removed: removed)), try keyMembersOf([devices[1], devices[3]]))
        XCTAssertEqual(try changedSet(before, SetChange(added: "", removed: [])), before)
        let wrong = [
            SetChange(added: String(added.dropLast(4)), removed: []),
            SetChange(added: "?", removed: []),
            SetChange(added: encodeBase64(entry(0)), removed: []),
            SetChange(added: "", removed: devices.map(\.name)),
        ]
        for change in wrong { assertNoSet("\(change)") { _ = try changedSet(before, change) } }
    }

    func testAnotherFormIsNoSet() {
        let entries = (0..<4).map(entry)
        func setOf(_ count: UInt8, _ entries: [UInt8]...) -> [UInt8] { [0, count] + entries.joined() }
        let wrong =
            octets.cut + [
                octets + [0],
                setOf(0),
                setOf(3, entries[0], entries[1], entries[2], entries[3]),
                setOf(2, entries[1], entries[0]),
                setOf(2, entries[0], entries[0]),
                setOf(2, entries[0], entries[0].changed(at: 47)),
            ]
        for each in wrong {
            assertNoSet("\(each.count) octets") { _ = try readKeyMembers(encodeBase64(each)) }
            assertNoSet("\(each.count) octets") { _ = try hashOfSet(encodeBase64(each)) }
        }
        assertNoSet("no base64") { _ = try readKeyMembers("?") }
        assertNoSet("one twice") { _ = try keyMembersOf([devices[0], devices[0]]) }
    }

    func testASetHasAsManyDevicesAsAKeyMapAndOne() throws {
        let publicKey = SoftwareDeviceKeys.generate().publicKey
        func setOf(_ count: UInt64) throws -> String {
            try keyMembersOf((0..<count).map { try KeyHolder(userId: 1, deviceId: $0, publicKey: publicKey) })
        }
        XCTAssertEqual(try readKeyMembers(setOf(321)).count, 321)
        assertNoSet("322") { _ = try setOf(322) }
    }
}
