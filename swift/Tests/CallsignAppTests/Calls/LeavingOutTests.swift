import XCTest

@testable import CallsignApp

final class LeavingOutTests: XCTestCase {
    @CallsignActor private final class Told {
        private(set) var all: [[UInt64]] = []

        func leftOut(_ userId: UInt64, _ deviceId: UInt64) { all.append([userId, deviceId]) }
    }

    /// Refuses the first of `old` whom it is asked for, as sealing does, and else gives those whom it was asked for.
    @CallsignActor private func asking(_ people: [UInt64], old: [UInt64], _ told: Told) async throws -> [UInt64] {
        try await leavingOut(people, told.leftOut) { able in
            if let one = old.first(where: able.contains) { throw keyUnsupported(one, 10 * one, "is too old") }
            return able
        }
    }

    @CallsignActor func testACallGoesOnWithoutEachPersonWhomNothingCanBeSealedFor() async throws {
        let told = Told()
        let able = try await asking([1, 2, 3, 4], old: [2, 4], told)
        XCTAssertEqual(able, [1, 3])
        XCTAssertEqual(told.all, [[2, 20], [4, 40]])
    }

    @CallsignActor func testNobodyIsCalledWhereNobodyIsLeftOrAnotherPersonsDeviceIsTheReason() async throws {
        let told = Told()
        for (people, old) in [([2, 4], [2, 4]), ([1, 2], [7])] as [([UInt64], [UInt64])] {
            do {
                _ = try await leavingOut(people, told.leftOut) { able in
                    let one = old.first(where: able.contains) ?? old[0]
                    throw keyUnsupported(one, 10 * one, "is too old")
                } as Void
                XCTFail("they were called")
            } catch {
                XCTAssertTrue(error.hasCode("KEY_UNSUPPORTED"), "\(error)")
            }
        }
    }
}
