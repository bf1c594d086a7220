import CallsignVerify
import XCTest

@testable import CallsignApp

final class EventStreamTests: XCTestCase {
    private func stream() -> EventStream<String> { EventStream(3) { "\($0) missed" } }

    func testAReaderThatIsTooSlowIsToldHowManyEventsItHasMissedAndNotTheLastOne() async {
        let stream = stream()
        var slow = stream.events.makeAsyncIterator()
        var quick = stream.events.makeAsyncIterator()
        stream.tell("0")
        let first = await quick.next()
        XCTAssertEqual(first, "0")
        var heard: [String] = []
        if let event = await slow.next() { heard.append(event) }
        for number in 1...5 { stream.tell("\(number)") }
        stream.tellLast("the end")
        while let event = await slow.next() { heard.append(event) }
        XCTAssertEqual(heard, ["0", "3 missed", "4", "5", "the end"])
        let late = await all(stream.events)
        XCTAssertEqual(late, ["the end"])
    }

    func testAReaderThatIsTooSlowForTheFirstEventsIsToldSoToo() async {
        let stream = stream()
        stream.tell("before")
        var slow = stream.events.makeAsyncIterator()
        for number in 1...5 { stream.tell("\(number)") }
        var heard: [String] = []
        for _ in 0..<4 { if let event = await slow.next() { heard.append(event) } }
        XCTAssertEqual(heard, ["2 missed", "3", "4", "5"])
    }

    func testAReaderThatComesWhileTheLastEventIsToldGetsItOnce() async {
        for _ in 0..<500 {
            let stream = stream()
            stream.tell("before")
            async let told = all(stream.events)
            async let _ = stream.tellLast("the end")
            let heard = await told
            XCTAssertEqual(heard, ["the end"])
        }
    }

    func testNothingIsToldBehindTheLastEvent() async {
        let stream = stream()
        let events = stream.events
        stream.tellLast("the end")
        stream.tell("more")
        stream.tellLast("another end")
        let heard = await all(events)
        let late = await all(stream.events)
        XCTAssertEqual([heard, late], [["the end"], ["the end"]])
    }
}

private func all(_ events: AsyncStream<String>) async -> [String] {
    var heard: [String] = []
    for await event in events { heard.append(event) }
    return heard
}
