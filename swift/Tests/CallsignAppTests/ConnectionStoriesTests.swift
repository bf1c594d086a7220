import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

final class ConnectionStoriesTests: XCTestCase {
    func testTheActsOfEachStoryAreAsListedAndItEndsWhereAPersonCanLeave() throws {
        let lines = try storyLines("device-connection")
        var situations: [String: JSONValue] = [:]
        for line in lines { if let name = line.textOrNil("situation") { situations[name] = line } }
        let stories = lines.filter { $0.textOrNil("name") != nil && isPlayed($0) }
        for story in stories {
            do {
                try play(story, situations)
            } catch {
                XCTFail("\(try story.text("name")): \(error)")
            }
        }
        XCTAssertGreaterThan(stories.count, 100)
    }

    private func play(_ story: JSONValue, _ situations: [String: JSONValue]) throws {
        let name = try story.text("name")
        var player = ConnectionStoryPlayer(situations)
        try player.begin(story)
        for step in story.list("steps") {
            let acts = try player.play(step)
            XCTAssertEqual(acts, try step.texts("acts").map(ordered), "\(name): \(step["in"]?.text ?? "")")
        }
        XCTAssertEqual(player.phase, try story.text("phase"), name)
        XCTAssertEqual(player.nextMs, story.find("next")?.int, name)
        XCTAssertEqual(try player.leave(), [], name)
    }

    /// Members of the JSON in an act in the order of their names, as Swift writes them.
    private func ordered(_ act: String) -> String {
        guard let start = act.firstIndex(of: "{"), let value = JSONValue(String(act[start...])) else { return act }
        return act[..<start] + value.text
    }

    /// Swift has no tabs, like Kotlin.
    private func isPlayed(_ line: JSONValue) -> Bool {
        line["only"] == nil || line.list("only").contains { $0.string == "kotlin" || $0.string == "swift" }
    }
}
