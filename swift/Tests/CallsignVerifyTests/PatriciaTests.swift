import TestSupport
import XCTest

@testable import CallsignVerify

// Proofs in the index's tree: by the vectors of another implementation, and against a tree that is hashed as the words say.

private struct KeyValue {
    let key: [UInt8]
    let value: [UInt8]
}

/// The hash of the tree with these pairs, all of different keys.
private func naiveHash(_ pairs: [KeyValue]) throws -> [UInt8] {
    guard let first = pairs.first else { return emptyRoot }
    if pairs.count == 1 { return patriciaLeafHash(first.key, first.value) }
    let bit = partingOf(pairs)
    let (left, right) = (pairs.filter { keyBit($0.key, bit) == 0 }, pairs.filter { keyBit($0.key, bit) == 1 })
    return try patriciaNodeHash(bit, naiveHash(left), naiveHash(right))
}

/// The proof of the key's value, or of its absence.
private func naiveProof(_ pairs: [KeyValue], _ key: [UInt8]) throws -> [UInt8] {
    var path: [UInt8] = []
    var left = pairs
    while left.count > 1 {
        let bit = partingOf(left)
        let far = left.filter { keyBit($0.key, bit) != keyBit(key, bit) }
        left = left.filter { keyBit($0.key, bit) == keyBit(key, bit) }
        path = varintOf(bit) + (try naiveHash(far)) + path
    }
    guard let end = left.first else { return [] }
    if end.key == key { return path }
    return varintOf(end.key.count) + end.key + varintOf(end.value.count) + end.value + path
}

private func partingOf(_ pairs: [KeyValue]) -> Int {
    let first = pairs[0].key
    var bit = 0
    while pairs.allSatisfy({ keyBit($0.key, bit) == keyBit(first, bit) }) { bit += 1 }
    return bit
}

private func varintOf(_ value: Int) -> [UInt8] {
    value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7f | 0x80)] + varintOf(value >> 7)
}

private func codeOfClaim(_ root: [UInt8], _ key: [UInt8], _ value: [UInt8]?, _ proof: [UInt8]) -> LogError.Code? {
    logErrorCode { try verifyPatricia(PatriciaClaim(root: root, key: key, value: value, proof: proof)) }
}

final class PatriciaVectorsTests: XCTestCase {
    func testTheHashesOf32TreesComeOut() throws {
        let cases = try readVectors("mpt-treehash").list("cases")
        XCTAssertEqual(cases.count, 32)
        for example in cases {
            let pairs = try example.list("pairs").map { pair in
                let texts = try known(pair.array, "pair").map { try fromHex(known($0.string, "pair")) }
                return KeyValue(key: texts[0], value: texts[1])
            }
            XCTAssertEqual(hex(try naiveHash(pairs)), try example.text("hash"))
        }
    }

    func test103ProofsAreJudgedAsTheyAreThere() throws {
        let cases = try readVectors("mpt-verify").list("cases")
        XCTAssertEqual(cases.count, 103)
        for (at, example) in cases.enumerated() {
            let value = try example.textOrNil("val").map { try fromHex($0) }
            let code = codeOfClaim(try example.hex("snap"), try example.hex("key"), value, try example.hex("proof"))
            XCTAssertEqual(code, try example.flag("ok") ? nil : .proofInvalid, "case \(at)")
        }
    }
}

final class PatriciaTreesTests: XCTestCase {
    private var random = SeededRandom(seed: 52)

    /// Keys that share long beginnings, and keys of several lengths.
    private func keyIn(_ shape: Int) -> [UInt8] {
        let length = shape % 2 == 0 ? 4 : Int.random(in: 0..<5, using: &random)
        return octets(length, upTo: shape < 2 ? 1 : 255)
    }

    private func treeIn(_ shape: Int) -> [KeyValue] {
        let keys = Set((0..<Int.random(in: 0..<20, using: &random)).map { _ in keyIn(shape) })
        return keys.sorted { $0.lexicographicallyPrecedes($1) }
            .map { KeyValue(key: $0, value: octets(Int.random(in: 0..<3, using: &random), upTo: 255)) }
    }

    private func octets(_ count: Int, upTo last: UInt8) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...last, using: &random) }
    }

    func testWhateverARandomTreeHoldsIsProvedAndWhatItDoesNotHoldIsProvedAbsent() throws {
        for at in 0..<200 {
            let pairs = treeIn(at % 4)
            let root = try naiveHash(pairs)
            for pair in pairs {
                let proof = try naiveProof(pairs, pair.key)
                XCTAssertNil(codeOfClaim(root, pair.key, pair.value, proof), "tree \(at)")
                XCTAssertEqual(codeOfClaim(root, pair.key, pair.value + [1], proof), .proofInvalid, "tree \(at)")
                XCTAssertEqual(codeOfClaim(root, pair.key, nil, proof), .proofInvalid, "tree \(at)")
            }
            let absent = keyIn(at % 4)
            if pairs.contains(where: { $0.key == absent }) { continue }
            let proof = try naiveProof(pairs, absent)
            XCTAssertNil(codeOfClaim(root, absent, nil, proof), "tree \(at)")
            XCTAssertEqual(codeOfClaim(root, absent, [0], proof), .proofInvalid, "tree \(at)")
        }
    }

    func testNoProofWithAChangedBitAnOctetMoreOrAnOctetLessHolds() throws {
        for at in 0..<60 {
            let pairs = treeIn(at % 4)
            let root = try naiveHash(pairs)
            for claimed in Set([pairs.first?.key ?? keyIn(0), keyIn(at % 4)]) {
                let value = pairs.first { $0.key == claimed }?.value
                let proof = try naiveProof(pairs, claimed)
                let changed = (0..<8 * proof.count).map { bit in
                    var other = proof
                    other[bit / 8] ^= 1 << UInt8(bit % 8)
                    return other
                }
                let shorter = proof.isEmpty ? [] : [Array(proof.dropLast())]
                for other in changed + [proof + [0], [0] + proof] + shorter {
                    XCTAssertEqual(codeOfClaim(root, claimed, value, other), .proofInvalid, "tree \(at): \(hex(other))")
                }
            }
        }
    }

    func testTheEmptyTreeHasNoKeyAndNoOtherTreeIsProvedByNothing() throws {
        let zeros = [UInt8](repeating: 0, count: 32)
        XCTAssertNil(codeOfClaim(emptyRoot, zeros, nil, []))
        let root = try naiveHash([KeyValue(key: zeros, value: zeros)])
        XCTAssertEqual(codeOfClaim(root, [UInt8](repeating: 1, count: 32), nil, []), .proofInvalid)
        XCTAssertEqual(codeOfClaim(emptyRoot, zeros, zeros, []), .proofInvalid)
    }

    func testLengthsAndBitsThatNoProofHasAreRefusedAtOnce() {
        let zeros = [UInt8](repeating: 0, count: 32)
        let endless = [UInt8](repeating: 0xff, count: 70)
        let huge = varintOf(1 << 48) + [UInt8](repeating: 0, count: 40)
        for proof in [endless, huge] {
            XCTAssertEqual(codeOfClaim(emptyRoot, zeros, nil, proof), .proofInvalid)
            XCTAssertEqual(codeOfClaim(emptyRoot, zeros, zeros, proof), .proofInvalid)
        }
    }
}

final class IndexLeafTests: XCTestCase {
    private let root = (0..<32).map { UInt8(7 * $0) }
    private var numbers: String { root.map { "\($0)" }.joined(separator: ",") }
    private let note = "log.example\n1\n\u{2014} x\n"

    private func leaf(input: String? = nil, root: String? = nil) -> String {
        let input = input ?? encodeBase64(Array(note.utf8))
        return "{\"input_log_cp\":\"\(input)\",\"index_root\":[\(root ?? numbers)]}"
    }

    func testALeafIsReadAsAnIndexWritesIt() throws {
        let read = try parseIndexLeaf(Array(leaf().utf8))
        XCTAssertEqual(read.inputCheckpoint, note)
        XCTAssertEqual(read.root, root)
    }

    func testNoOtherOctetsAreALeaf() {
        let behind = numbers.dropFirst(2)
        let cases = [
            "", "{}", leaf() + "\n", leaf().replacingOccurrences(of: ":[", with: ": ["), leaf(root: "\(numbers),0"),
            leaf(root: "\(numbers),"), leaf(root: String(behind)), leaf(root: "00,\(behind)"), leaf(root: "256,\(behind)"),
            leaf(root: "99999999999,\(behind)"), leaf(root: "+0,\(behind)"), leaf(root: "\u{660},\(behind)"), leaf(root: ""),
            leaf(input: "AA"), leaf(input: encodeBase64([0xff])), leaf(input: String(repeating: "A", count: 65_536)),
        ]
        for text in cases {
            XCTAssertEqual(logErrorCode { _ = try parseIndexLeaf(Array(text.utf8)) }, .malformed, String(text.prefix(100)))
        }
    }

    func testKeysAndValuesAreHashesOfTextsAndNumbers() throws {
        XCTAssertEqual(indexKeyOf("abc"), sha256(Array("abc".utf8)))
        XCTAssertEqual(indexValueOf([1, safeMax]), sha256(try fromHex("0000000000000001" + "001fffffffffffff")))
        XCTAssertEqual(indexOriginOf("log.example"), "log.example/index")
    }
}

/// SplitMix64: the same trees at each run.
private struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
