import TestSupport
import XCTest

@testable import CallsignVerify

/// The lists of numbers in a proof of the index.
final class IndexNumbersTests: XCTestCase {
    func testNumbersAreReadAsJavaScriptReadsThem() throws {
        let vectors = try readVectors("index-lookups")
        let example = try known(vectors.list("cases").first { $0["verdict"]?.string?.hasPrefix("complete [1") == true }, "cases")
        let keys = try keysOf(vectors.get("keys").get(example.text("keys")))
        let proof = try known(example.get("proof").object, "proof")
        let indexes = example["proof"]?.list("index_value") ?? []
        let digits = try indexes.map { try known($0.int, "index_value") }
        func verdict(_ first: String) throws -> String {
            var changed = proof
            changed["index_value"] = .array([.number(first)] + indexes.dropFirst())
            var members = try known(example.object, "case")
            members["proof"] = .object(changed)
            return try indexVerdictOn(keys, .object(members))
        }
        let expected = try example.text("verdict")
        for same in ["\(digits[0]).0", "\(digits[0])e0", "0.\(digits[0])e\("\(digits[0])".count)"] {
            XCTAssertEqual(try verdict(same), expected, same)
        }
        for other in ["1e400", "-1", "0.5", "9007199254740992", "1e-400", "-0"] {
            XCTAssertEqual(try verdict(other), "refused at completeness", other)
        }
    }
}
