import TestSupport
import XCTest

@testable import CallsignApp

/// Values that change, and who reads them.
final class WatchedTests: XCTestCase {
    func testAReaderGetsTheValueAsItIsThenAsItBecomes() async throws {
        let watched = Watched(1)
        var values = watched.values.makeAsyncIterator()
        let first = await values.next()
        watched.set(2)
        let second = await values.next()
        XCTAssertEqual([first, second], [1, 2])
        XCTAssertEqual(watched.value, 2)
    }

    /// Equal by its name alone.
    private struct Named: Equatable {
        let name: String
        let mark: Int

        static func == (one: Named, other: Named) -> Bool { one.name == other.name }
    }

    func testAnEqualValueIsNoChange() async throws {
        let watched = Watched(Named(name: "a", mark: 1))
        watched.set(Named(name: "a", mark: 2))
        XCTAssertEqual(watched.value.mark, 1)
        watched.set(Named(name: "b", mark: 3))
        XCTAssertEqual(watched.value.mark, 3)
    }

    func testAReaderThatIsSlowGetsTheNewestOnly() async throws {
        let watched = Watched(0)
        var values = watched.values.makeAsyncIterator()
        for number in 1...1_000 { watched.set(number) }
        let value = await values.next()
        XCTAssertEqual(value, 1_000)
    }

    func testAReaderThatHasGoneIsForgotten() async throws {
        let watched = Watched(0)
        XCTAssertFalse(watched.isRead)
        let reading = Task {
            for await _ in watched.values {}
        }
        while !watched.isRead { await Task.yield() }
        reading.cancel()
        await reading.value
        XCTAssertFalse(watched.isRead)
    }
}
