import TestSupport
import XCTest

@testable import CallsignVerify

/// Swift takes different spellings of a text for the same. What a stranger writes is compared by its octets.
final class HostileSpellingsTests: XCTestCase {
    /// U+212A is a K to Swift, and to nobody else.
    func testAServerDeniesAKeyByTheOctetsOfTheCodeAlone() async throws {
        for (code, denies) in [("UNKNOWN_PUBLIC_KEY_HASH", true), ("UNKNOWN_PUBLIC_\u{212a}EY_HASH", false)] {
            let client = try await clientOf(Array(#"{"code":"\#(code)"}"#.utf8))
            let outcome = try await client.checkOwnKeys(OwnDevice(userId: 1, deviceId: 1, vrfHash: "", publicKeys: ["AAAA"]))
            if denies {
                guard case .holds(let report) = outcome else { return XCTFail("\(outcome)") }
                XCTAssertEqual(.alert(foreign: [], missing: ["AAAA"], outdated: []), report.ownKeys)
            } else {
                guard case .unanswered(let unanswered) = outcome else { return XCTFail("\(outcome)") }
                XCTAssertEqual(404, unanswered.status)
            }
        }
    }

    func testDevicesWhoseIdsLookAlikeAreTwo() {
        let (one, other) = (DeviceEvent(.unlisted, deviceId: "\u{e9}"), DeviceEvent(.unlisted, deviceId: "e\u{301}"))
        XCTAssertNotEqual(one, other)
        XCTAssertEqual(one, DeviceEvent(.unlisted, deviceId: "\u{e9}"))
        XCTAssertNotEqual(one, DeviceEvent(.removed, deviceId: "\u{e9}"))
        XCTAssertNotEqual(one, DeviceEvent(.unlisted))
    }

    func testLogsWhoseOriginsLookAlikeAreKeptApart() async {
        let store = MemoryCheckpointStore()
        for (origin, size) in [("\u{e9}", 1), ("e\u{301}", 2)] {
            await store.put(
                KeptCheckpoint(checkpoint: SignedCheckpoint(origin: origin, treeSize: size, rootHash: "", note: "")))
        }
        let first = await store.get("\u{e9}")
        XCTAssertEqual(1, first?.checkpoint.treeSize)
    }

    /// Half of a surrogate pair is kept by other readers, which refuse a note with one.
    func testANoteWithHalfASurrogatePairIsRefusedAtTheSameCheck() async throws {
        let lines = try readLines("client-verdicts")
        let base = lines.first { $0.textOrNil("kind") == "lookup" && $0.textOrNil("base") == nil }
        let value = try known(base, "lookup").get("value")
        let proof = try value.get("result").text("proof")
        let places = [("log.example/kt\n40", "origin"), ("\u{2014} log", "checkpoint"), ("index ", "proof")]
        for (place, check) in places {
            let at = try known(proof.range(of: place)?.upperBound, place)
            let answer = JSONValue.string(proof).text.dropFirst().dropLast()
            let written = JSONValue.string(String(proof[..<at])).text.dropFirst().dropLast()
            let broken = written.dropLast(check == "origin" ? 4 : 0) + "\\ud800" + answer.dropFirst(written.count)
            var members = try known(value.get("result").object, "result")
            members["proof"] = .null
            let others = JSONValue.object(members).text.dropLast()
            let body = #"{"results":[\#(others),"proof":"\#(broken)"}]}"#
            let client = try await clientOf(Array(body.utf8), status: 200)
            let device = DeviceToLookUp(userId: 1, deviceId: 1, vrfHash: try value.get("claim").text("vrfHash"))
            guard case .refused(let refusal) = try await client.lookUp(device) else { return XCTFail(check) }
            XCTAssertEqual(check, refusal.check.rawValue)
        }
    }

    private func clientOf(_ body: [UInt8], status: Int = 404) async throws -> LogClient {
        let head = try known(readLines("client-verdicts").first, "keys")
        return try LogClient(
            keys: keysOf(head.get("keys").get("plain")), url: "https://log.example", store: MemoryCheckpointStore(),
            transport: FixedAnswer(answer: LogAnswer(status: status, body: body)))
    }
}

private struct FixedAnswer: LogTransport {
    let answer: LogAnswer

    func send(_ request: LogRequest) async -> LogAnswer { answer }
}
