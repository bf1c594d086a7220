import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// What texts lead to, by the vectors.
final class ScansTests: XCTestCase {
    func testEachTextLeadsWhereTheVectorsSay() throws {
        let scans = try known(readVectors("contact-scans").array, "scans")
        XCTAssertGreaterThan(scans.count, 40)
        for scan in scans {
            let expected: Scan? =
                switch try scan.text("kind") {
                case "link": .link(ContactLink(token: try scan.text("token"), fragment: try scan.text("fragment")))
                case "user": .user(try known(uint64(scan.text("userId")), "userId"))
                default: nil
                }
            let name = try scan.text("name")
            XCTAssertEqual(scanIn(try scan.text("text")), expected, name)
        }
    }
}
