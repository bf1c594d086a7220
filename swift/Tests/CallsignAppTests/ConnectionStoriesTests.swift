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
            XCTAssertEqual(acts, try step.texts("acts"), "\(name): \(step["in"]?.text ?? "")")
        }
        XCTAssertEqual(player.phase, try story.text("phase"), name)
        XCTAssertEqual(player.nextMs, story.find("next")?.int, name)
        XCTAssertEqual(try player.leave(), [], name)
    }

    /// Swift has no tabs, like Kotlin.
    private func isPlayed(_ line: JSONValue) -> Bool {
        line["only"] == nil || line.list("only").contains { $0.string == "kotlin" || $0.string == "swift" }
    }
}
