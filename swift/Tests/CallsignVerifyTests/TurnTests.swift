import TestSupport
import XCTest

@testable import CallsignVerify

/// What happens one after the other, and what is left of it where a task is cancelled.
final class TurnTests: XCTestCase {
    func testTurnsComeInTheirOrderAlsoAcrossAnAwait() async throws {
        let turn = Turn()
        let told = Locked<[Int]>([])
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let (held, holding) = AsyncStream<Void>.makeStream()
        async let first: Void = turn.one {
            beginning.yield()
            for await _ in held { break }
            told.with { $0.append(1) }
        }
        for await _ in begun { break }
        async let second: Void = turn.one { told.with { $0.append(2) } }
        holding.yield()
        _ = try await (first, second)
        XCTAssertEqual([1, 2], told.with { $0 })
    }

    func testATurnThatFailsPassesItOn() async throws {
        let turn = Turn()
        do {
            try await turn.one { throw LogError.malformed("once") }
            XCTFail("it went on")
        } catch let error as LogError {
            XCTAssertEqual("once", error.message)
        }
        let value = try await turn.one { 2 }
        XCTAssertEqual(2, value)
    }

    func testATurnThatWasCancelledWhileItWaitedIsNotTaken() async throws {
        let turn = Turn()
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let (held, holding) = AsyncStream<Void>.makeStream()
        async let first: Void = turn.one {
            beginning.yield()
            for await _ in held { break }
        }
        for await _ in begun { break }
        let second = Task { try await turn.one { XCTFail("it was cancelled") } }
        second.cancel()
        holding.yield()
        try await first
        let result = await second.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
        let value = try await turn.one { 3 }
        XCTAssertEqual(3, value)
    }

    func testWhoIsCancelledWaitsNoLongerAndTheOthersKeepTheirOrder() async throws {
        let turn = Turn()
        let told = Locked<[Int]>([])
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let (held, holding) = AsyncStream<Void>.makeStream()
        async let first: Void = turn.one {
            beginning.yield()
            for await _ in held { break }
        }
        for await _ in begun { break }
        let others = (0..<20).map { number in Task { try await turn.one { told.with { $0.append(number) } } } }
        for number in stride(from: 0, to: 20, by: 2) {
            others[number].cancel()
            let result = await others[number].result
            XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
        }
        XCTAssertEqual([], told.with { $0 })
        holding.yield()
        try await first
        for number in stride(from: 1, to: 20, by: 2) { try await others[number].value }
        XCTAssertEqual(Array(stride(from: 1, to: 20, by: 2)), told.with { $0 }.sorted())
    }

    func testACheckpointWhoseComparisonIsCancelledIsPending() async throws {
        let lines = try readLines("client-stories")
        let keys = try keysOf(known(lines.first, "keys").get("keys"))
        let notes = lines.dropFirst().flatMap { $0.list("steps") }
            .filter { $0.textOrNil("act") == "compareWith" }
            .compactMap { $0["given"]?.string }
            .filter { if case .holds = verifyCheckpoint(keys, $0) { true } else { false } }
        let (asked, asking) = AsyncStream<Void>.makeStream()
        let store = MemoryCheckpointStore()
        let client = try LogClient(
            keys: keys, url: "https://log.example", store: store, transport: SilentTransport { asking.yield() })
        let first = try known(notes.first, "a note")
        let second = try known(notes.first { sizeOf(keys, $0) != sizeOf(keys, first) }, "another note")
        _ = try await client.compareWith(first)
        let waiting = Task { try await client.compareWith(second) }
        for await _ in asked { break }
        waiting.cancel()
        let result = await waiting.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
        let kept = try known(await store.get(keys.origin), "kept")
        XCTAssertEqual(first, kept.checkpoint.note)
        XCTAssertEqual([second], kept.pending)
        XCTAssertNotNil(kept.openSinceMs)
    }

    private func sizeOf(_ keys: LogKeys, _ note: String) -> Int? {
        if case .holds(let verified) = verifyCheckpoint(keys, note) { verified.checkpoint.treeSize } else { nil }
    }
}

/// Says that it was asked, and never answers.
private struct SilentTransport: LogTransport {
    let asked: @Sendable () -> Void

    func send(_ request: LogRequest) async throws -> LogAnswer {
        asked()
        try await neverEnding()
        throw TransportError(description: "it ended")
    }
}
