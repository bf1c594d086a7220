import TestSupport
import XCTest

@testable import CallsignVerify

final class CallKeyContentTests: XCTestCase {
    private let origin = "log.example/kt"

    private func vector() throws -> JSONValue { try readVectors("call-key-checkpoint") }

    private func checkpoint() throws -> SignedCheckpoint {
        let vrfKey = try readVectors("derived-kt-e2e").text("vrf_pk_base64")
        let keys = try LogKeys.ofVerifierKey(vector().text("vkey"), vrfPublicKey: vrfKey)
        XCTAssertEqual(keys.origin, origin)
        guard case .holds(let verified) = verifyCheckpoint(keys, try vector().text("note")) else {
            throw LogError.malformed("the note of the vector does not hold")
        }
        return verified.checkpoint
    }

    func testKeyHashTimeAndCheckpointComeOutAsTheVectorHasThemAndGoInAgain() throws {
        let vector = try vector()
        let read = try readCallKey(vector.hex("opened_hex"), origin: origin)
        XCTAssertEqual(hex(read.content.callKey), try vector.text("call_key_hex"))
        XCTAssertEqual(hex(read.content.setHash), try vector.text("set_hash_hex"))
        XCTAssertEqual(read.content.sealedAtMs, try vector.number("sealed_at_ms"))
        XCTAssertEqual(read.note, try vector.text("note"))
        XCTAssertEqual(hex(try packCallKey(read.content, checkpoint: checkpoint())), try vector.text("opened_hex"))
        let without = try readCallKey(packCallKey(read.content), origin: origin)
        XCTAssertEqual(without.content, read.content)
        XCTAssertNil(without.note)
    }

    func testAnotherLengthAndATimeThatNotAllCanHoldAreRefused() throws {
        let opened = try vector().hex("opened_hex")
        let lengths = opened.indices.map { Array(opened[..<$0]) } + [opened + [0]]
        let taken = lengths.filter { octets in logErrorCode { _ = try readCallKey(octets, origin: origin) } != .malformed }
        XCTAssertEqual(taken.map(\.count), [72])
        func content(_ keyOctets: Int = 32, _ setOctets: Int = 32, sealedAtMs: Int = 0) -> CallKeyContent {
            CallKeyContent(
                callKey: [UInt8](repeating: 1, count: keyOctets), setHash: [UInt8](repeating: 2, count: setOctets),
                sealedAtMs: sealedAtMs)
        }
        let latest = try packCallKey(content(sealedAtMs: safeMax))
        XCTAssertEqual(try readCallKey(latest, origin: origin).content.sealedAtMs, safeMax)
        for (at, octet) in [(65, 0x20), (65, 0x80), (64, 0x20), (64, 0x80)] {
            var late = opened
            late[at] = UInt8(octet)
            XCTAssertEqual(logErrorCode { _ = try readCallKey(late, origin: origin) }, .malformed, "\(octet) at \(at)")
        }
        for wrong in [content(31), content(32, 33), content(sealedAtMs: -1), content(sealedAtMs: safeMax + 1)] {
            XCTAssertEqual(logErrorCode { _ = try packCallKey(wrong) }, .malformed)
        }
    }

    func testANoteWithoutTheLogsSignatureIsNotPacked() throws {
        let checkpoint = try checkpoint()
        let text = try readNote(checkpoint.note).text
        let witness = "\(signatureStart)\(origin) \(encodeBase64([UInt8](repeating: 1, count: 76)))\n"
        for lines in [witness, "\(signatureStart)w \(encodeBase64([UInt8](repeating: 1, count: 68)))\n"] {
            let other = SignedCheckpoint(
                origin: origin, treeSize: checkpoint.treeSize, rootHash: checkpoint.rootHash, note: "\(text)\n\(lines)")
            XCTAssertNil(try packCheckpoint(other))
        }
    }
}

final class SigningMessagesTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("signing-messages") }

    private func signed() throws -> [JSONValue] {
        let vectors = try vectors()
        return ["possession", "sign_in", "answer", "step_up"].flatMap(vectors.list)
    }

    func testMessagesHaveTheOctetsOfTheVectors() throws {
        let vectors = try vectors()
        let possessions = try vectors.list("possession").map { try possessionMessage($0.hex("challenge")) }
        let signIns = try vectors.list("sign_in").map { try signInMessage($0.hex("challenge_id")) }
        let answers = try vectors.list("answer").map {
            try signInAnswerMessage(
                userId: known(uint64($0.text("user_id")), "user_id"), id: $0.hex("id"), isApproved: $0.flag("approve"))
        }
        let stepUps = try vectors.list("step_up").map {
            try stepUpMessage(userId: known(uint64($0.text("user_id")), "user_id"), proof: $0.hex("proof"))
        }
        XCTAssertEqual((possessions + signIns + answers + stepUps).map(hex), try signed().map { try $0.text("message") })
    }

    func testAChallengeOrIdOfAnotherLengthIsRefused() {
        func octets(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
        XCTAssertEqual(logErrorCode { _ = try possessionMessage(octets(31)) }, .malformed)
        XCTAssertEqual(logErrorCode { _ = try signInMessage(octets(17)) }, .malformed)
        let answer = logErrorCode { _ = try signInAnswerMessage(userId: 1, id: octets(15), isApproved: true) }
        XCTAssertEqual(answer, .malformed)
        XCTAssertEqual(logErrorCode { _ = try stepUpMessage(userId: 1, proof: octets(33)) }, .malformed)
    }

    func testEachSignatureHoldsForItsOwnMessageAlone() throws {
        let key = try vectors().hex("signing_key")
        let all = try signed()
        for example in all {
            let message = try example.hex("message")
            let taken = try all.filter { p256Verify(publicKey: key, message: message, signature: try $0.hex("signature")) }
            XCTAssertEqual(taken, [example])
        }
    }
}

final class ComparisonTests: XCTestCase {
    private let list = encodeBase64((0..<32).map { UInt8(0xff - $0) })
    private let origin = "log.example/kt"

    func testTheCodeIsTheSameForBothAndAnotherForAnotherList() throws {
        let ann = ListedPerson(userId: 1, listHash: list)
        let bob = ListedPerson(userId: .max, listHash: encodeBase64([UInt8](repeating: 0, count: 32)))
        let code = try comparisonCode(ann, bob)
        XCTAssertEqual(try comparisonCode(bob, ann), code)
        XCTAssertEqual(code.split(separator: " ").map(\.count), [Int](repeating: 5, count: 12))
        XCTAssertNotEqual(try comparisonCode(ListedPerson(userId: 1, listHash: bob.listHash), bob), code)
        for wrong in ["", "AAAA", list + "=", String(list.dropLast())] {
            XCTAssertEqual(
                logErrorCode { _ = try comparisonCode(ListedPerson(userId: 1, listHash: wrong), bob) }, .malformed, wrong)
        }
    }

    func testAFragmentComesBackWithItsNotes() throws {
        let vector = try readVectors("call-key-checkpoint")
        let note = try vector.text("note")
        let lines = note.split(separator: "\n").map(String.init)
        let checkpoint = SignedCheckpoint(origin: origin, treeSize: 40, rootHash: lines[2], note: note)
        let person = ListedPerson(userId: .max, listHash: list)
        let shared = try shareFragment(person, checkpoint: checkpoint)
        XCTAssert(shared.hasPrefix("#u=18446744073709551615&l="))
        XCTAssertFalse(shared.dropFirst().contains { "+/#".contains($0) })
        for fragment in [shared, String(shared.dropFirst())] {
            XCTAssertEqual(try readShareFragment(fragment, origin: origin), SharedPerson(person: person, note: note))
        }
        XCTAssertEqual(try readShareFragment(shareFragment(person), origin: origin), SharedPerson(person: person))
        let index = SignedCheckpoint(
            origin: "\(origin)/index", treeSize: 40, rootHash: lines[2],
            note: note.replacingOccurrences(of: origin, with: "\(origin)/index"))
        let both = try shareFragment(person, checkpoint: checkpoint, indexCheckpoint: index)
        let expected = SharedPerson(person: person, note: note, indexNote: index.note)
        XCTAssertEqual(try readShareFragment(both, origin: origin), expected)
    }

    func testAFragmentOfAPersonIsWholeOrRefused() throws {
        let list = try shareFragment(ListedPerson(userId: 1, listHash: list)).dropFirst("#u=1".count)
        for nothing in ["", "#", "#top", "a=b&c", "\u{e9}=1"] { XCTAssertNil(try readShareFragment(nothing, origin: origin)) }
        for broken in [
            "#u=1", "#\(list)", "#u=\(list)", "#u=01\(list)", "#u=+1\(list)", "#u=18446744073709551616\(list)",
            "#u=\u{661}\(list)", "#u=1\(list)A", "#u=1\(list)&n=", "#u=1\(list)&n=AAAA", "#u=1\(list)&i=AAAA", "#u=1&l=\u{e9}", "#u=1\u{301}\(list)",
        ] {
            XCTAssertEqual(logErrorCode { _ = try readShareFragment(broken, origin: origin) }, .malformed, broken)
        }
    }
}
