import TestSupport
import XCTest

@testable import CallsignVerify

final class DeviceListTests: XCTestCase {
    private var vectors: JSONValue { get throws { try readVectors("device-list") } }

    /// The octets of a list by its name; an unknown name is the list itself in hexadecimal.
    private func list(_ name: String) throws -> [UInt8] {
        try vectors.list("lists").first { $0.textOrNil("name") == name }?.hex("hex") ?? fromHex(name)
    }

    private func judge(_ example: JSONValue, next: [UInt8]) throws -> DeviceListVerdict {
        let userId = try known(uint64(example.text("user_id")), "user_id")
        return try judgeDeviceList(userId: userId, previous: example.textOrNil("previous").map(list), next: next)
    }

    func testListsAreReadAndComeOutAgainOctetByOctet() throws {
        for example in try vectors.list("lists") {
            let octets = try example.hex("hex")
            let list = try parseDeviceList(octets)
            XCTAssertEqual(octets, try encodeDeviceList(list))
            XCTAssertEqual(try example.text("sha256"), hex(deviceListHash(octets)))
            XCTAssertEqual(try example.text("user_id"), "\(list.userId)")
            XCTAssertEqual(try example.number("seq"), list.seq)
            XCTAssertEqual(try example.texts("device_ids"), list.devices.map { "\($0.deviceId)" })
            XCTAssertEqual(try example.text("signer_device_id"), "\(list.signerDeviceId)")
        }
    }

    func testEachListIsJudgedAsTheVectorsSay() throws {
        for example in try vectors.list("judged") {
            let (verdict, reason): (String, String?) =
                switch try judge(example, next: list(example.text("next"))) {
                case .taken(let kind, _): (kind.rawValue, nil)
                case .refused(let reason, _): ("refused", reason.rawValue)
                }
            let name = try example.text("name")
            XCTAssertEqual(try example.text("verdict"), verdict, name)
            XCTAssertEqual(example.textOrNil("reason"), reason, name)
        }
    }

    func testADamagedListOfBeforeIsAnErrorOfItsKeeperNotAVerdictOnTheNextList() throws {
        let (before, next) = (try list("first"), try list("second adds the tablet"))
        let userId = try parseDeviceList(next).userId
        let damaged = [0] + before.dropFirst()
        for previous in [damaged, Array(before.dropFirst()), []] {
            let code = logErrorCode { _ = try judgeDeviceList(userId: userId, previous: previous, next: next) }
            XCTAssertEqual(.malformed, code)
        }
        let verdict = try judgeDeviceList(userId: userId, previous: damaged, next: [0] + next.dropFirst())
        guard case .refused(.malformed, _) = verdict else { return XCTFail("\(verdict)") }
    }

    func testWithAnyOctetChangedAListIsRefused() throws {
        for example in try vectors.list("judged").prefix(6) {
            let octets = try list(example.text("next"))
            let userId = try known(uint64(example.text("user_id")), "user_id")
            let previous = try example.textOrNil("previous").map(list)
            for at in octets.indices {
                var changed = octets
                changed[at] ^= UInt8(1 + at % 255)
                let verdict = try judgeDeviceList(userId: userId, previous: previous, next: changed)
                guard case .refused = verdict else { return XCTFail("octet \(at) of \(example)") }
            }
        }
    }

    func testWithAnyEndCutOffAListIsRefused() throws {
        let octets = try list("first")
        for count in octets.indices {
            XCTAssertEqual(.malformed, logErrorCode { _ = try parseDeviceList(Array(octets.prefix(count))) })
        }
        XCTAssertEqual(.malformed, logErrorCode { _ = try parseDeviceList(octets + [0]) })
    }

    func testTheOctetsToSignAreThoseOfTheListAndTheListHasTheSignatureThatWasMade() async throws {
        let octets = try list("second adds the tablet")
        let list = try parseDeviceList(octets)
        let next = NextDeviceList(
            userId: list.userId,
            devices: list.devices.reversed(),
            signerDeviceId: list.signerDeviceId,
            createdAtMs: list.createdAtMs,
            previous: try self.list("first")
        )
        let signed = try await signDeviceList(next) { toSign in
            XCTAssertEqual(Array(octets.dropLast(64)), toSign)
            return list.signature
        }
        XCTAssertEqual(octets, signed)
        var strange = next
        strange.signerDeviceId = 5
        do {
            _ = try await signDeviceList(strange) { _ in list.signature }
            XCTFail("the signer is in no list")
        } catch let error as LogError {
            XCTAssertEqual(.malformed, error.code)
        }
    }
}
