import TestSupport
import XCTest

@testable import CallsignVerify

/// Other tasks run wherever an actor or a store waits: what they keep in between must not be lost.
final class CheckpointPinTests: XCTestCase {
    func testThePinNeverMovesBackHoweverManyCheckpointsArriveAtOnce() async throws {
        let lines = try readLines("client-verdicts")
        let keys = try keysOf(known(lines.first, "keys").get("keys").get("plain"))
        let bases = lines.filter { $0.find("value") != nil }
        let seen = try ["empty, plain", "one, plain", "whole, plain"].map { name in
            let base = try known(bases.first { $0.textOrNil("kind") == "checkpoint" && $0.textOrNil("name") == name }, name)
            guard case .holds(let found) = verifyCheckpoint(keys, try base.get("value").text("note")) else {
                throw VectorError(name: name)
            }
            return found.checkpoint
        }
        let tiled = try known(bases.first { $0.textOrNil("name") == "honest, 7 to 40" }, "tiles").get("value").get("tiles")
        let fetchTile: FetchTile = { tile in
            await Task.yield()
            return try tiled.hex(formatTilePath(tile))
        }
        for first in seen.indices {
            let store = WaitingStore()
            let pin = CheckpointPin(keys, store, [fetchTile], maxAgeMs: nil)
            let order = [seen[first]] + (0..<4).flatMap { _ in seen }
            try await withThrowingTaskGroup(of: Acceptance.self) { group in
                for checkpoint in order { group.addTask { try await pin.accept(checkpoint, nowMs: 0) } }
                for try await outcome in group {
                    guard case .accepted = outcome else { return XCTFail("\(outcome)") }
                }
            }
            let sizes = await store.sizes
            XCTAssertEqual(sizes.sorted(), sizes)
            XCTAssertEqual(40, sizes.last)
            let highest = try await pin.highest()
            XCTAssertEqual(seen[2], highest)
        }
    }
}

/// Lets others run before and after each step.
private actor WaitingStore: CheckpointStore {
    private(set) var sizes: [Int] = []
    private var kept: KeptCheckpoint?

    func get(_ origin: String) async -> KeptCheckpoint? {
        let found = kept
        for _ in 0..<3 { await Task.yield() }
        return found
    }

    func put(_ kept: KeptCheckpoint) async {
        for _ in 0..<3 { await Task.yield() }
        self.kept = kept
        sizes.append(kept.checkpoint.treeSize)
    }
}
