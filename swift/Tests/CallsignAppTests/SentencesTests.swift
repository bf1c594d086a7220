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

    func testEachCodeOfThisSideHasASentenceOrIsOneThatNoUserCanDoAnythingAbout() throws {
        let named = try readVectors("sentences").list("sentences").flatMap { try $0.texts("codes") }
        let source = projectRoot.appendingPathComponent("swift/Sources/CallsignApp/CallsignError.swift")
        let codes = try String(contentsOf: source, encoding: .utf8).split(separator: "\n")
            .filter { $0.contains("public static let ") }.compactMap { $0.split(separator: "\"").dropFirst().first }
        XCTAssertGreaterThan(codes.count, 25)
        XCTAssertEqual(codes.filter { !named.contains(String($0)) }, ["ANSWER_INVALID"])
    }

    func testEachCaseOfTheVectors() throws {
        let before = Spoken.language
        defer { Spoken.language = before }
        for vector in try readVectors("sentences").list("cases") {
            Spoken.language = try vector.text("language")
            let members = try vector.get("members").object ?? [:]
            let error = CallsignError(try vector.text("code"), "for developers", members: members)
            let name = try vector.text("name")
            XCTAssertEqual(error.sentence, try vector.text("sentence"), name)
        }
    }
}

/// On the built server, whose titles come first; skipped where it is not built.
final class ServedSentencesTests: ServedTests {
    func testTheServerSaysItsTitlesInTheAppsLanguageByRequestAndBySocket() async throws {
        let before = Spoken.language
        defer { Spoken.language = before }
        let storage = MemoryAppStorage()
        try await server.person("Ann", platformHTTP(), storage).close()
        let (english, german) = try await (refusals("en", storage), refusals("de-AT", storage))
        for (one, other) in zip(english, german) { XCTAssertNotEqual(one.sentence, other.sentence, one.code) }
        for refusal in english + german {
            let title = try refusal.members.needText("title")
            XCTAssertTrue([title, "\(title)."].contains(refusal.sentence), refusal.sentence)
        }
    }

    /// One by a request, one by the socket.
    private func refusals(_ language: String, _ storage: any AppStorage) async throws -> [CallsignError] {
        let speaking = try Server(server.url, sockets: TCPStompTransport(server.stompTcp), language: language)
        let session = try await Session.open(speaking, storage)
        let run = await ConnectionTests.Run(speaking, session) { _, _ in }
        await run.connect()
        try await run.connections.first { $0 == 1 }
        let refusals = try await [
            failure { _ = try await session.request("GET", "call/7") }, failure { try await run.send("/app/nothing") },
        ]
        try await run.disconnect()
        return refusals
    }
}
