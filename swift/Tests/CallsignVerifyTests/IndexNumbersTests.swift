import TestSupport
import XCTest

@testable import CallsignVerify

final class IndexNumbersTests: XCTestCase {
    func testNumbersOfAProofAreReadAsJavaScriptReadsThem() {
        let zeros = String(repeating: "0", count: 10_000)
        let read: [(String, Int)] = [
            ("0", 0), ("-0", 0), ("0.0", 0), ("1e-400", 0), ("3.0", 3), ("3e0", 3), ("0.3e1", 3), ("255", 255),
            ("1.0\(zeros)", 1), ("3.00000000000000000000000001", 3),
        ]
        for (digits, value) in read { XCTAssertEqual(try numberIn(.number(digits), max: 255), value, String(digits.prefix(30))) }
        XCTAssertEqual(try numberIn(.number("9007199254740991"), max: safeMax), safeMax)
        for digits in ["-1", "0.5", "256", "1e400", "-1e400", "9007199254740993", "1\(zeros)", "-1e-300"] {
            XCTAssertEqual(logErrorCode { _ = try numberIn(.number(digits), max: 255) }, .malformed, String(digits.prefix(30)))
        }
        XCTAssertEqual(logErrorCode { _ = try numberIn(.number("9007199254740992"), max: safeMax) }, .malformed)
        for value in ["1", true, nil, ["1"], [:]] as [JSONValue?] {
            XCTAssertEqual(logErrorCode { _ = try numberIn(value ?? .null, max: 255) }, .malformed)
        }
    }
}
