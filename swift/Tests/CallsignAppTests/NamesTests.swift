import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// By which names people are shown: by the vectors.
final class NamesTests: XCTestCase {
    func testPeopleAreShownAsTheVectorsSay() async throws {
        for vector in try readVectors("contact-names").list("cases") { try await Self.play(vector, vector.text("name")) }
    }

    @CallsignActor private static func play(_ vector: JSONValue, _ name: String) async throws {
        let changes = Locked(0)
        let names = Names { changes.with { $0 += 1 } }
        for step in vector.list("steps") {
            if step["contacts"] != nil {
                try await names.load {
                    for event in step.list("meanwhile") { try names.onEvent(known(event.object, name)) }
                    return try step.list("contacts").map { try personOf(known($0.object, name)) }
                }
            }
            if let event = step["event"]?.object { try names.onEvent(event) }
            if let shown = step["shown"]?.object {
                var person = try personOf(shown)
                person.isContact = shown["isContact"]?.bool
                XCTAssertEqual(.object(words(names.of(person))), try step.get("as"), name)
            }
            if let count = step["changes"]?.int { XCTAssertEqual(changes.with { $0 }, count, name) }
        }
    }

    private static func words(_ person: Person) -> [String: JSONValue] {
        var words: [String: JSONValue] = ["name": .string(person.name), "displayName": .string(person.displayName)]
        words["alias"] = person.alias.map(JSONValue.string)
        words["isContact"] = person.isContact.map(JSONValue.bool)
        return words
    }
}
