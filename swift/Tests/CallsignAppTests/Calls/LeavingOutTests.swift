import XCTest

@testable import CallsignApp

final class LeavingOutTests: XCTestCase {
    func testACallGoesOnWithoutEachPersonWhomNothingCanBeSealedFor() async throws {
        let asked = Asked()
        let able = try await asked.asking([1, 2, 3, 4], old: [2, 4])
        XCTAssertEqual(able, [1, 3])
        let told = await asked.told
        XCTAssertEqual(told, [[2, 20], [4, 40]])
    }

    func testNobodyIsCalledWhereNobodyIsLeftOrAnotherPersonsDeviceIsTheReason() async throws {
        for (people, old) in [([2, 4], [2, 4]), ([1, 2], [7])] as [([UInt64], [UInt64])] {
            do {
                _ = try await Asked().asking(people, old: old, refusesAlways: true)
                XCTFail("they were called")
            } catch {
                XCTAssertTrue(error.hasCode("KEY_UNSUPPORTED"), "\(error)")
            }
        }
    }
}

@CallsignActor private final class Asked {
    private(set) var told: [[UInt64]] = []

    nonisolated init() {}

    /// Refuses the first of `old` whom it is asked for, as sealing does, and else gives those whom it was asked for; if it
    /// `refusesAlways`, for the first of `old` in any case.
    func asking(_ people: [UInt64], old: [UInt64], refusesAlways: Bool = false) async throws -> [UInt64] {
        try await leavingOut(people, { self.told.append([$0, $1]) }) { able in
            let first = old.first(where: able.contains) ?? (refusesAlways ? old.first : nil)
            if let first { throw keyUnsupported(first, 10 * first, "is too old") }
            return able
        }
    }
}
