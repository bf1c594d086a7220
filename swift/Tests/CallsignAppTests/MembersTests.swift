import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// The server's JSON, member by member.
final class MembersTests: XCTestCase {
    private let members: [String: JSONValue] = [
        "text": "a", "number": 7, "digits": "8", "plus": "+9", "big": "18446744073709551615", "flag": true, "null": .null,
        "list": ["a", 1], "objects": [["a": 1]], "mixed": [["a": 1], 2], "part": .number("1.5"), "far": .number("1e300"),
    ]

    private func code(_ act: () throws -> Void) -> String? {
        do {
            try act()
            return nil
        } catch {
            return (error as? CallsignError)?.code
        }
    }

    func testAMemberOfAnotherFormIsRefused() throws {
        XCTAssertEqual(members.text("number"), "7")
        XCTAssertEqual(members.text("flag"), "true")
        XCTAssertEqual([members.text("null"), members.text("list"), members.text("none")], [nil, nil, nil])
        XCTAssertEqual(try members.needNumber("digits"), 8)
        XCTAssertEqual(try members.needId("big"), .max)
        XCTAssertEqual(try members.texts("list"), ["a", "1"])
        XCTAssertEqual(try members.members("objects"), [["a": 1]])
        XCTAssertNil(try members.textsOrNil("none"))
        XCTAssertEqual(members.numbers("list"), [1])
        for act in [
            { _ = try self.members.needText("null") }, { _ = try self.members.needNumber("plus") },
            { _ = try self.members.needNumber("part") }, { _ = try self.members.needNumber("big") },
            { _ = try self.members.needId("plus") }, { _ = try self.members.member("list") },
            { _ = try self.members.members("mixed") }, { _ = try self.members.texts("objects") },
            { _ = try self.members.textsOrNil("null") }, { _ = try self.members.needTimeMs("text") },
            { _ = try self.members.needDurationMs("text") },
        ] as [() throws -> Void] {
            XCTAssertEqual(code(act), "ANSWER_INVALID")
        }
    }

    func testADurationThatIsTooLongForSumsWithTheTimeIsCut() throws {
        XCTAssertEqual(try members.needDurationMs("part"), 1_500)
        XCTAssertEqual(try members.needDurationMs("far"), 1_000_000_000_000)
        XCTAssertEqual(try ["it": .number("-1")].needDurationMs("it"), 0)
        for text in ["nan", "", "1s"] {
            XCTAssertEqual(code { _ = try ["it": .string(text)].needDurationMs("it") }, "ANSWER_INVALID", text)
        }
    }

    func testATimeIsInUTCAsRFC3339WritesIt() throws {
        let times = [
            "1970-01-01T00:00:00Z": 0,
            "1969-12-31T23:59:59.999Z": -1,
            "2000-02-29T12:00:00.5Z": 951_825_600_500,
            "2026-11-30T08:09:10.123456789Z": 1_796_026_150_123,
            "0000-01-01T00:00:00Z": -62_167_219_200_000,
            "9999-12-31T23:59:59Z": 253_402_300_799_000,
        ]
        for (text, timeMs) in times { XCTAssertEqual(timeMsOrNil(text), timeMs, text) }
        for text in [
            "", "2026-11-30", "2026-11-30T08:09:10", "2026-11-30T08:09:10+00:00", "2026-11-30t08:09:10Z", "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-11-31T00:00:00Z", "2026-11-30T24:00:00Z",
            "2026-11-30T08:60:00Z", "2026-11-30T08:09:60Z", "2026-11-30T08:09:10.Z", "2026-11-30T08:09:10.1234567890Z",
            "+026-11-30T08:09:10Z", "2026-11-30T08:09:10,5Z", "２026-11-30T08:09:10Z", "2026-11-30T08:09:10Z\n",
            "12026-11-30T08:09:10Z",
        ] {
            XCTAssertNil(timeMsOrNil(text), text)
        }
    }

    func testAnIdOfASessionHasSixteenOctets() {
        XCTAssertEqual(octetsOfId("-_-_-_-_-_-_-_-_-_-_-g"), try fromHex("fbffbffbffbffbffbffbffbffbffbffa"))
        for id in ["", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB", "++++++++++++++++++++++", "AAAAAAAAAAAAAAAAAAAAAAAA"] {
            XCTAssertNil(octetsOfId(id), id)
        }
    }

    func testANameThatThisVersionDoesNotKnowIsNone() {
        XCTAssertEqual(namedOrNil("PENDING"), RequestStatus.pending)
        XCTAssertNil(namedOrNil("other") as RequestStatus?)
        XCTAssertNil(namedOrNil(nil) as RequestStatus?)
    }
}
