import Foundation
import XCTest

@testable import Model

final class WordsTests: XCTestCase {
    private let resources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Calls/App/Resources")

    /// Each line is `"name" = "text";`.
    private func names(_ language: String) throws -> [String] {
        let file = resources.appendingPathComponent("\(language).lproj/Words.strings")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("\"") }.map { line in
            XCTAssertTrue(line.hasSuffix("\";"), "\(line)")
            return String(line.dropFirst().prefix { $0 != "\"" })
        }
    }

    func testEachLanguageHasEachWordOnce() throws {
        for language in ["en", "vi", "de"] {
            XCTAssertEqual(try names(language).sorted(), Word.allCases.map(\.rawValue).sorted(), language)
        }
    }

    func testAWordTakesItsArgument() {
        XCTAssertFalse(Word.codeSentTo.text("kim@example.org").contains("%@"))
    }
}
