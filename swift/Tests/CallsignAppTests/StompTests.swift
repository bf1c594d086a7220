import TestSupport
import XCTest

@testable import CallsignApp

final class StompTests: XCTestCase {
    func testHeadersAreEscapedAndReadBackButThoseOfConnectAreNot() throws {
        let headers = [StompHeader("a:b", "c\\d\ne\rf:"), StompHeader("plain", "")]
        let text = StompFrame.format("SEND", headers, body: "{}")
        XCTAssertEqual(Array(text.utf8), Array("SEND\na\\cb:c\\\\d\\ne\\rf\\c\nplain:\n\n{}\0".utf8))
        let frame = try StompFrame(text)
        XCTAssertEqual(frame.command, "SEND")
        XCTAssertEqual(frame.headers, ["a:b": "c\\d\ne\rf:", "plain": ""])
        XCTAssertEqual(frame.body, "{}")
        XCTAssertEqual(StompFrame.format("CONNECT", [StompHeader("host", "a:b")]), "CONNECT\nhost:a:b\n\n\0")
        XCTAssertEqual(try StompFrame("CONNECTED\nserver:a\\cb\n\n\0").headers["server"], "a\\cb")
    }

    func testALineEndBehindACarriageReturnIsOneAllTheSame() throws {
        let text = StompFrame.format("SEND", [StompHeader("a", "b\r\nc")])
        XCTAssertEqual(Array(text.utf8), Array("SEND\na:b\\r\\nc\n\n\0".utf8))
        XCTAssertEqual(try StompFrame("MESSAGE\na:b\r\nid:1\n\nx\r\n\0").headers, ["a": "b\r", "id": "1"])
    }

    func testTheFirstOfRepeatedHeadersCounts() throws {
        XCTAssertEqual(try StompFrame("MESSAGE\nid:1\nid:2\n\n\0").headers, ["id": "1"])
    }

    func testWhatIsNoFrameIsRefused() {
        for text in ["", "MESSAGE", "MESSAGE\nid\n\n\0", "MESSAGE\n:1\n\n\0", "MESSAGE\na:\\t\n\n", "MESSAGE\na:\\\n\n"] {
            XCTAssertThrowsError(try StompFrame(text), text) { XCTAssertTrue($0.hasCode("ANSWER_INVALID"), text) }
        }
    }
}
