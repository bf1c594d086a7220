import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// What an app shows its user for an error, by the vectors.
final class SentencesTests: XCTestCase {
    func testEachCodeHasItsSentenceInEachLanguageAndTheOthersShareOne() throws {
        let vectors = try readVectors("sentences")
        for sentences in vectors.list("sentences") {
            for code in try sentences.texts("codes") {
                for language in ["en", "vi", "de"] {
                    XCTAssertEqual(sentenceFor(code, title: nil, language: language), try sentences.text(language), code)
                }
            }
        }
        let other = try vectors.get("other")
        for code in ["INTERNAL", "ANSWER_INVALID", "", "OFFLINE\u{301}"] {
            for language in ["en", "vi", "de"] {
                XCTAssertEqual(sentenceFor(code, title: nil, language: language), try other.text(language), code)
            }
        }
    }

    func testEachCaseOfTheVectors() throws {
        for vector in try readVectors("sentences").list("cases") {
            let title = try vector.get("members")["title"]?.string
            let sentence = sentenceFor(try vector.text("code"), title: title, language: try vector.text("language"))
            let name = try vector.text("name")
            XCTAssertEqual(sentence, try vector.text("sentence"), name)
        }
    }
}
