import TestSupport
import XCTest

@testable import CallsignVerify

final class CheckpointTests: XCTestCase {
    private let root = encodeBase64([UInt8](repeating: 0, count: 32))

    private func vectors() throws -> JSONValue { try readVectors("checkpoint") }

    func testPublishedCheckpointsVerify() throws {
        for example in try vectors().list("verify") {
            let verifiers = [try parseVerifierKey(example.text("vkey"))]
            let note = try example.text("note")
            guard try example.flag("ok") else {
                XCTAssertEqual(logErrorCode { _ = try openNote(note, verifiers) }, .signatureInvalid)
                continue
            }
            XCTAssertEqual(try parseCheckpoint(openNote(note, verifiers).text).treeSize, try example.number("size"))
        }
    }

    func testPublishedTextsAreReadOrRefusedRootsOfOtherLengthsAndEmptyLinesRefused() throws {
        for example in try vectors().list("parse") {
            let text = try example.text("text")
            let lines = linesOf(text.utf8).map(textOf)
            let rootOctets = lines.count > 2 ? try? fromBase64(lines[2]).count : nil
            // Leniencies of the libraries named in the remarks, against the specification.
            let isLax = lines[0].isEmpty || lines.dropFirst(3).dropLast().contains("") || rootOctets != 32
            let expected: LogError.Code? = try !example.flag("ok") || isLax ? .malformed : nil
            let id = try example.text("id")
            XCTAssertEqual(logErrorCode { _ = try parseCheckpoint(text) }, expected, id)
        }
    }

    func testTheCheckpointsOfTheWebtesseraLogOpen() throws {
        let log = try vectors().get("webtessera")
        let skey = try log.text("skey")
        let name = skey.split(separator: "+")[2]
        let vkey = try readVectors("signed-note").list("keys").first { $0.textOrNil("skey") == skey }
        for checkpoint in log.list("checkpoints") {
            let note = try checkpoint.text("note")
            let read = try readNote(note)
            XCTAssertEqual(try parseCheckpoint(read.text).treeSize, try checkpoint.number("size"))
            XCTAssertEqual(read.signatures.map(\.name), [String(name)])
            if let vkey { _ = try openNote(note, [parseVerifierKey(vkey.text("vkey"))]) }
        }
    }

    func testOriginsHave1To255Octets() throws {
        let lengths = try vectors().get("origin_length")
        let valid = lengths.list("valid_bytes").compactMap(\.int)
        let invalid = lengths.list("invalid_bytes").compactMap(\.int)
        for octets in valid { _ = try parseCheckpoint("\(String(repeating: "o", count: octets))\n1\n\(root)\n") }
        for origin in invalid.map({ String(repeating: "o", count: $0) }) + [String(repeating: "\u{fc}", count: 128)] {
            XCTAssertEqual(logErrorCode { _ = try parseCheckpoint("\(origin)\n1\n\(root)\n") }, .malformed)
        }
    }

    func testSizesAreDecimalNumbersBelow2To53() throws {
        XCTAssertEqual(try parseCheckpoint("o\n9007199254740991\n\(root)\n").treeSize, safeMax)
        let wrong = ["01", "1 ", "+1", "", "1.0", "-1", "9007199254740992", "18446744073709551615", "\u{663}", "1\u{301}", "1\r"]
        for size in wrong { XCTAssertEqual(logErrorCode { _ = try parseCheckpoint("o\n\(size)\n\(root)\n") }, .malformed, size) }
    }
}

final class CosignatureTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("cosignature") }

    /// When the witness cosigned the text by each line that has its name and id.
    private func timesOf(_ text: String, _ witness: VerifierKey, _ lines: String) throws -> [Int?] {
        try readNote("\(text)\n\(lines)").signatures
            .filter { $0.isOf(witness.name, witness.keyId) }
            .map { cosignedAtSeconds(text, witness, $0.signature) }
    }

    func testPublishedCosignaturesVerifyWithTheirTimesAndOnAnotherTextTheyDoNot() throws {
        for example in try vectors().list("sign_and_verify") + vectors().list("verify_only") {
            let witness = try parseWitnessKey(example.text("vkey"))
            let text = try example.text("text")
            XCTAssertEqual(try timesOf(text, witness, example.text("line")), [try example.number("time")])
            XCTAssertEqual(try timesOf("\(text)more\n", witness, example.text("line")), [nil])
        }
    }

    func testWithAnyBitChangedInTimeOrSignatureACosignatureDoesNotVerify() throws {
        let example = try known(vectors().list("verify_only").first, "verify_only")
        let witness = try parseWitnessKey(example.text("vkey"))
        let words = try example.text("line").split { $0 == " " || $0 == "\n" }
        let octets = Array(try fromBase64(String(words[2])).dropFirst(4))
        for bit in 0..<8 * octets.count {
            var changed = octets
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            XCTAssertNil(cosignedAtSeconds(try example.text("text"), witness, changed), "bit \(bit)")
        }
    }

    func testLinesOfAnotherLengthDoNotCountNorDoesASignatureOverTheTextAlone() throws {
        let answer = try vectors().get("response_parse")
        let witness = try parseWitnessKey(answer.text("vkey"))
        XCTAssertEqual(try timesOf(answer.text("text"), witness, answer.text("body")), [1234, nil])
        for example in try vectors().get("timestamp_parse").list("cases").prefix(2) {
            let octets = Array(try example.base64("signature_base64").dropFirst(4))
            XCTAssertEqual(octets.count == 72, try example.flag("ok"))
            XCTAssertNil(cosignedAtSeconds("any\n", witness, octets))
        }
    }

    func testBothFormsOfAWitnessKeyAreOneKey() throws {
        for example in try vectors().list("key_forms") {
            guard let vkey = example.textOrNil("ed25519_vkey") else { continue }
            let witness = try parseWitnessKey(example.text("cosignature_vkey"))
            let other = try parseWitnessKey(vkey)
            XCTAssertEqual(other.name, witness.name)
            XCTAssertEqual(other.keyId, witness.keyId)
            XCTAssertEqual(other.publicKey, witness.publicKey)
        }
        let mldsa = "wit+8a02ff48+BAfe++5m5B3xn/Y6v0aIaD81QA6knU+YssC0ku5oFQ4H"
        XCTAssertEqual(logErrorCode { _ = try parseWitnessKey(mldsa) }, .keyInvalid)
    }
}

final class WitnessPolicyTests: XCTestCase {
    /// Go's library takes what the specification forbids: comments behind words, and a key twice.
    private let forbidden = ["whitespace and comments", "group numerical", "group all", "group any"]

    func testPublishedPoliciesAreReadAsGoReadsThemButForWhatTheSpecificationForbids() throws {
        for example in try readVectors("witness-policy").list("cases") {
            let id = try example.text("id")
            let policy = try example.text("policy")
            guard try example.flag("ok"), !forbidden.contains(id) else {
                XCTAssertEqual(logErrorCode { _ = try parsePolicy(policy) }, .malformed, id)
                continue
            }
            guard case .group(let quorum) = try parsePolicy(policy).quorum else { return XCTFail(id) }
            if let threshold = example.find("top_threshold") { XCTAssertEqual(quorum.threshold, threshold.int, id) }
        }
    }

    func testAQuorumIsAsOldAsItsMemberThatCountsLast() {
        func witness(_ number: Int) -> QuorumMember {
            .witness(Witness(name: "\(number)", key: VerifierKey(name: "w\(number)", keyId: 0, publicKey: [])))
        }
        func group(_ threshold: Int, _ members: [QuorumMember]) -> QuorumMember {
            .group(WitnessGroup(name: "g", threshold: threshold, members: members))
        }
        func secondsOf(_ quorum: QuorumMember, _ times: Int?...) -> Int? {
            quorumSeconds(quorum) { times[Int($0.name)! - 1] }
        }
        let (one, two, three, four) = (witness(1), witness(2), witness(3), witness(4))
        XCTAssertEqual(secondsOf(one, 5), 5)
        XCTAssertEqual(secondsOf(group(2, [one, two, three]), 5, 9, 7), 7)
        XCTAssertNil(secondsOf(group(2, [one, two, three]), 5, nil, nil))
        let nested = group(2, [group(1, [one, two]), group(2, [three, four])])
        XCTAssertEqual(secondsOf(nested, 1, 9, 8, 7), 7)
        XCTAssertEqual(secondsOf(nested, 1, nil, 8, 7), 1)
        XCTAssertNil(secondsOf(nested, 1, 9, 8, nil))
    }

    func testTwoSpellingsOfANameAreTwoMembersAndACarriageReturnEndsNoWord() throws {
        let vkeys = try readVectors("cosignature").list("verify_only").map { try $0.text("vkey") }
        let vkey = try known(vkeys.first, "verify_only")
        let policy = "witness \u{e9} \(vkey)\nquorum e\u{301}\n"
        XCTAssertEqual(logErrorCode { _ = try parsePolicy(policy) }, .malformed)
        XCTAssertEqual(try parsePolicy("witness \u{e9} \(vkey)\nquorum \u{e9}\n").witnesses.count, 1)
        XCTAssertEqual(logErrorCode { _ = try parsePolicy("witness \u{e9} \(vkey)\r\nquorum \u{e9}\r\n") }, .malformed)
    }
}
