import CallsignCrypto
import TestSupport
import XCTest

@testable import CallsignVerify

final class RistrettoTests: XCTestCase {
    private var vectors: JSONValue { get throws { try readVectors("ristretto255") } }

    func testMultiplesOfTheGeneratorComeOutAndComeBack() throws {
        var sum = RistrettoElement.identity
        for multiple in try vectors.texts("generator_multiples_hex") {
            XCTAssertEqual(hex(sum.octets), multiple)
            XCTAssertEqual(try RistrettoElement(octets: fromHex(multiple)).map { hex($0.octets) }, multiple)
            sum = sum + .base
        }
    }

    func testThe29InvalidEncodingsAreNone() throws {
        let invalid = try known(vectors.get("invalid_encodings_hex").object, "invalid").values.flatMap { $0.array ?? [] }
        XCTAssertEqual(invalid.count, 29)
        for encoding in invalid { XCTAssertNil(RistrettoElement(octets: try fromHex(known(encoding.string, "hex")))) }
        for count in [0, 31, 33] { XCTAssertNil(RistrettoElement(octets: [UInt8](repeating: 0, count: count))) }
    }

    func test64OctetsAreMappedToTheElementsOfTheRFC() throws {
        let cases = try vectors.list("derive_from_sha512") + vectors.list("derive_from_bytes")
        XCTAssertEqual(cases.count, 11)
        for vector in cases {
            let element = RistrettoElement(uniform: try vector.hex("uniform_bytes_hex"))
            XCTAssertEqual(hex(element.octets), try vector.text("element_hex"))
        }
    }
}

final class VrfTests: XCTestCase {
    private var published: JSONValue { get throws { try readVectors("vrf-r255") } }
    private var derived: JSONValue { get throws { try readVectors("derived-vrf-r255") } }

    private func verify(_ vector: JSONValue, proof: [UInt8]? = nil) throws -> [UInt8] {
        try verifyVrf(publicKey: vector.hex("pk"), input: vector.hex("alpha"), proof: proof ?? vector.hex("pi"))
    }

    func testPublishedAndDerivedProofsVerifyThoseOfGoToo() throws {
        let ofGo = try published.get("go_generated_verify_only").list("cases")
        let cases = try published.list("published") + ofGo + derived.list("valid")
        XCTAssertGreaterThanOrEqual(cases.count, 17)
        for vector in cases { XCTAssertEqual(hex(try verify(vector)), try vector.text("beta")) }
    }

    func testEachInvalidProofOrKeyOfTheVectorsIsRefused() throws {
        let cases = try derived.list("invalid")
        XCTAssertFalse(cases.isEmpty)
        for vector in cases {
            let id = try vector.text("id")
            let isOfKey = id == "pk-noncanonical" || id == "identity-pk"
            XCTAssertEqual(logErrorCode { _ = try verify(vector) }, isOfKey ? .keyInvalid : .proofInvalid, id)
        }
    }

    func testAProofWithAnyOneOctetChangedIsRefused() throws {
        let vector = try known(published.list("published").first, "published")
        let proof = try vector.hex("pi")
        for at in proof.indices {
            var changed = proof
            changed[at] ^= 1 << (at % 8)
            XCTAssertEqual(logErrorCode { _ = try verify(vector, proof: changed) }, .proofInvalid, "octet \(at)")
        }
        for count in [0, 79] {
            XCTAssertEqual(logErrorCode { _ = try verify(vector, proof: Array(proof.prefix(count))) }, .proofInvalid)
        }
        XCTAssertEqual(logErrorCode { _ = try verify(vector, proof: proof + [0]) }, .proofInvalid)
    }

    func testAPublicKeyIsTheBase64OfAnElementOtherThanTheIdentityOnly() throws {
        let vector = try known(published.list("published").first, "published")
        let good = encodeBase64(try vector.hex("pk"))
        XCTAssertEqual(hex(try parseVrfPublicKey(good)), try vector.text("pk"))
        let identity = encodeBase64([UInt8](repeating: 0, count: 32))
        for text in ["", "AAAA", "!", String(good.dropLast()), identity, good + "\n", "\u{e9}"] {
            XCTAssertEqual(logErrorCode { _ = try parseVrfPublicKey(text) }, .keyInvalid, text)
        }
    }

    func testTheInputIsTheDecimalUserAndDeviceIDJoinedByAnUnderscore() {
        XCTAssertEqual(vrfInput(userID: 1, deviceID: 11), Array("1_11".utf8))
        let largest = "18446744073709551615"
        XCTAssertEqual(vrfInput(userID: .max, deviceID: .max), Array("\(largest)_\(largest)".utf8))
    }

    func testProofsOfOneHashShareGamma() throws {
        let proofs = try published.list("published").prefix(2).map { try $0.hex("pi") }
        var other = proofs[0]
        other[79] ^= 1
        XCTAssertTrue(isOfSameHash(proofs[0], other))
        XCTAssertFalse(isOfSameHash(proofs[0], Array(other.dropLast())))
        other[31] ^= 1
        XCTAssertFalse(isOfSameHash(proofs[0], other))
        XCTAssertFalse(isOfSameHash(proofs[0], []))
    }
}
