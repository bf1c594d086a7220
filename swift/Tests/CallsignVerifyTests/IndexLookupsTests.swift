import TestSupport
import XCTest

@testable import CallsignVerify

/// Single lookups in an index, each with the verdict that `test/support/index-lookups.ts` wrote beside it.
final class IndexLookupsTests: XCTestCase {
    func testEveryLookupInTheIndexHasTheVerdictOfTheTypeScriptClient() throws {
        let vectors = try readVectors("index-lookups")
        let keys = try known(vectors.get("keys").object, "keys").mapValues(keysOf)
        let cases = vectors.list("cases")
        XCTAssertGreaterThanOrEqual(cases.count, 118)
        for each in cases {
            let name = try each.text("keys")
            let own = try indexVerdictOn(try known(keys[name], name), each)
            XCTAssertEqual(try each.text("verdict"), own, "\(each["name"] ?? .null)")
        }
    }
}

/// The verdict on one lookup, as `test/support/index-lookups.ts` words it.
func indexVerdictOn(_ keys: LogKeys, _ value: JSONValue) throws -> String {
    let index = try known(keys.index, "index")
    let (vrfHash, nowMs, maxAgeMs) = (try value.text("vrfHash"), try value.number("nowMs"), try value.number("maxIndexAgeMs"))
    let found: VerifiedIndex
    do throws(CheckFailed) {
        found = try verifyIndex(keys, index, vrfHash: vrfHash, proof: value["proof"], nowMs: nowMs, maxAgeMs: maxAgeMs)
    } catch {
        return "refused at \(error.refusal.check.rawValue)"
    }
    let tail = try value["tail"]?.array.map { try $0.map { try known($0.int, "a leaf") } }
    let shown = try value.find("shown").map { ShownEntry(index: try $0.number("index"), treeSize: try $0.number("treeSize")) }
    switch judgeCompleteness(found, isProved: index.isRebuilt, tail: tail, shown: shown) {
    case .refused(let refusal): return "refused at \(refusal.check.rawValue)"
    case .unanswered(let unanswered): return "unanswered at \(unanswered.check?.rawValue ?? "nil")"
    case .holds(let completeness): return completenessText(completeness)
    }
}

func completenessText(_ completeness: Completeness) -> String {
    guard case .complete(let indexes, let indexAgeMs, let isProved) = completeness else { return completeness.kind.rawValue }
    let age = indexAgeMs.map { "\($0)" } ?? "unknown"
    return "complete [\(indexes.map { "\($0)" }.joined(separator: ","))] age \(age) \(isProved ? "proved" : "unproved")"
}
