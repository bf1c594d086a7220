import TestSupport
import XCTest

@testable import CallsignVerify

final class JSONValueTests: XCTestCase {
    func testOnlyJSONIsReadDownTo32Levels() {
        let good = ["null", "7", "-0.5e+3", #""a\"[[""#, "[]", #"{"a":[true,{}]}"#, nested(32), " \t\r\n[ 1 , 2 ] \n", #""""#]
        for text in good { XCTAssertNotNil(read(text), text) }
        let bad = [
            "", " ", "<html>", "abc", "[abc]", #"{"a":b}"#, "{a:1}", "'a'", "01", "[1,]", "[,1]", "[1 2]", "{", "[",
            "}", "[]]", "[}",
            "nul", "nulll", "truefalse", "True", "NaN", "Infinity", "-", "+1", ".5",
            "5.", "1e", "1e+", "1.e1", "-01", "0x1", "--1",
            #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,}"#, #"{"a":1 "b":2}"#, #"{1:2}"#, #"{"a"::1}"#, "[1]1", "1 1", "\u{feff}1",
            "\u{a0}1",
            "1\u{b}", "\u{2028}1", "// a\n1", "1//", "[1]\0",
        ]
        for text in bad + [33, 1_000_000].map(nested) { XCTAssertNil(read(text), String(text.prefix(40))) }
        XCTAssertNil(read(String(repeating: "[", count: 1_000_000)))
        XCTAssertNil(read(String(repeating: #"{"a":"#, count: 33) + "1" + String(repeating: "}", count: 33)))
        // The levels are those around a value, not all that were opened.
        XCTAssertNotNil(read("[" + [String](repeating: nested(31), count: 40).joined(separator: ",") + "]"))
    }

    func testNoTextThatIsCutShortIsRead() throws {
        let whole = #"{"a":[true,false,null,-1.5e3],"b":"\"\u00e9\ud83d\ude00é"}"#
        XCTAssertNotNil(read(whole))
        let octets = Array(whole.utf8)
        for count in octets.indices { XCTAssertNil(JSONValue(octets: Array(octets[..<count]))) }
    }

    func testStrings() {
        let strings = [
            #""\"\\\/\b\f\n\r\t""#: "\"\\/\u{8}\u{c}\n\r\t",
            #""\u0041\u00e9\u20AC\uD83D\uDE00""#: "A\u{e9}\u{20ac}\u{1f600}",
            #""\u0000\u007f""#: "\u{0}\u{7f}",
            "\"\u{7f}\u{1f600}\"": "\u{7f}\u{1f600}",
            // Halves of a pair that stand alone, the wrong way round, or before something else.
            #""\ud83d""#: "\u{fffd}",
            #""\ude00""#: "\u{fffd}",
            #""\ude00\ud83d""#: "\u{fffd}\u{fffd}",
            #""\ud83d\ud83d\ude00""#: "\u{fffd}\u{1f600}",
            #""\ud83d\u0041""#: "\u{fffd}A",
            #""\ud83dA""#: "\u{fffd}A",
            #""\ud83d\n""#: "\u{fffd}\n",
            #""\udbff\udfff\ud800\udc00""#: "\u{10ffff}\u{10000}",
        ]
        for (text, string) in strings {
            let own = read(text)?.string
            XCTAssertTrue(own.map { isSame($0, string) } ?? false, text)
        }
        let bad = [
            #"""#, #""a"#, #""\"#, #""\""#, #""\x""#, #""\u""#, #""\u12""#, #""\u123g""#, #""\u+123""#, #""\u 123""#,
            #""\u12"34""#,
            #""\ud83d\u""#, #""\ud83d\uzzzz""#, #""\U0041""#, #""\'""#, "\"\n\"", "\"\t\"", "\"\u{1f}\"", "\"\u{0}\"",
            "\"\\u\u{ff11}\u{ff11}\u{ff11}\u{ff11}\"",
        ]
        for text in bad { XCTAssertNil(read(text), text) }
    }

    func testHalfOfAPairCanBecomeAControlCharacterThatNoNoteMayHave() {
        for text in [#""\ud83d""#, #""\ude00""#, #""\ud83d\n""#] {
            let own = JSONValue(octets: Array(text.utf8), half: "\0")?.string
            XCTAssertEqual(own?.unicodeScalars.first, "\0", text)
        }
    }

    /// As every other reader of this project does.
    func testOctetsThatAreNoUTF8AreReplacedInStringsAndRefusedElsewhere() {
        XCTAssertEqual(JSONValue(octets: [0x22, 0xff, 0x22]), "\u{fffd}")
        XCTAssertEqual(JSONValue(octets: [0x22, 0xc3, 0x22]), "\u{fffd}")
        XCTAssertNil(JSONValue(octets: [0xff, 0x31]))
        XCTAssertNil(JSONValue(octets: [0x31, 0xc3]))
    }

    func testNumbersStayAsTheyAreWritten() {
        for text in ["0", "-0", "18446744073709551615", "9007199254740993", "1.50", "1E400", "-1e-7"] {
            XCTAssertEqual(read(text), .number(text))
            XCTAssertEqual(read(text)?.text, text)
        }
        XCTAssertEqual(read("9223372036854775807")?.int, .max)
        XCTAssertEqual(read("-7")?.int, -7)
        for text in ["9223372036854775808", "1.0", "1e3", #""1""#, "true", "null"] { XCTAssertNil(read(text)?.int, text) }
    }

    func testOfTwoMembersOfOneNameTheLastOneCounts() {
        XCTAssertEqual(read(#"{"a":1,"b":2,"a":3}"#), ["a": 3, "b": 2])
        XCTAssertEqual(read(#"{"a":1,"\u0061":3}"#), ["a": 3])
        XCTAssertEqual(read(#"{"":1}"#)?[""]?.int, 1)
    }

    /// Swift's dictionaries take U+212A for K, and U+37E for a semicolon.
    func testAMemberIsNotFoundByANameOfOtherOctets() {
        let value = read("{\"K;`\":1,\"\u{212a};`\":2,\"K\u{37e}`\":3,\"K;\\u1fef\":4}")
        XCTAssertEqual(value?["K;`"]?.int, 1)
        XCTAssertNil(read("{\"public\u{212a}ey\":1}")?["publicKey"])
        XCTAssertEqual(read("{\"\u{fc}ber \u{212a}\":1}")?["\u{fc}ber \u{212a}"]?.int, 1)
    }

    func testWhatIsWrittenIsReadAgain() throws {
        let value: JSONValue = [
            "text": .string((0..<0x300).compactMap(Unicode.Scalar.init).map { String($0) }.joined() + "\u{1f600}\r\n"),
            "list": [1, -2, true, .null, [], [:]], "": "x",
        ]
        XCTAssertEqual(read(value.text), value)
        XCTAssertEqual(read(#"{"b":[ 1 ],"a":"\u0001\u001f\u007f"}"#)?.text, "{\"a\":\"\\u0001\\u001f\u{7f}\",\"b\":[1]}")
    }

    func testAMemberOfNoObjectIsNone() {
        for text in ["null", "[1]", "1", #""a""#, "true"] { XCTAssertNil(read(text)?["a"], text) }
        XCTAssertEqual(read("null")?.isNull, true)
        XCTAssertNil(read("{}")?.array)
        XCTAssertNil(read("[]")?.object)
        XCTAssertNil(read("0")?.bool)
        XCTAssertNil(read("1")?.string)
    }

    /// `JSONValue("1")` would be that string: a literal is no text to read.
    private func read(_ text: String) -> JSONValue? { JSONValue(text) }

    private func nested(_ levels: Int) -> String {
        String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
}

final class OctetsTests: XCTestCase {
    func testBase64HasOneSpelling() {
        for count in 0..<70 {
            let octets = octetsOf("\(count)", min(count, 64))
            XCTAssertEqual(base64Octets(encodeBase64(octets)), octets)
        }
        XCTAssertEqual(encodeBase64([0xfb, 0xff]), "+/8=")
        XCTAssertEqual(base64Octets(""), [])
        let bad = [
            "A", "AA", "AAA", "AA=", "AAA==", "====", "=", "AB==", "AAB=", "+/9=", "-_8=", "AAAA\n", "AA\r\nAA", " AAAA", "AAAA ",
            "AAAA=", "AAAA====", "AA==AAAA", "AAA\u{0}", "AA\u{ff1d}=", "\u{e9}AAA", "AAA\u{212a}", "\u{ff21}AAA", "AAAA\u{0}",
        ]
        for text in bad {
            XCTAssertNil(base64Octets(text), text)
            XCTAssertEqual(logErrorCode { _ = try decodeBase64(text) }, .malformed, text)
        }
    }

    func testAUint64HasOneSpelling() {
        for number in [0, 1, 10, 1 << 53, UInt64.max - 1, .max] { XCTAssertEqual(uint64("\(number)"), number) }
        let bad = [
            "", "00", "01", "+1", "-1", " 1", "1 ", "1\n", "1_0", "1.0", "1e3", "0x1", "18446744073709551616",
            "99999999999999999999", "184467440737095516150", "\u{661}", "\u{ff11}", "1\u{301}", "1\u{200d}",
            "\u{feff}1", "1\u{0}",
        ]
        for text in bad { XCTAssertNil(uint64(text), text) }
    }

    func testTextsAreTheSameByTheirOctets() {
        XCTAssertTrue(isSame("", ""))
        XCTAssertTrue(isSame("a\r\n", "a\r\n"))
        XCTAssertFalse(isSame("\u{e9}", "e\u{301}"))
        XCTAssertFalse(isSame("K", "\u{212a}"))
        XCTAssertFalse(isSame("a", "ab"))
    }

    func testOnlyUTF8IsDecoded() throws {
        for text in ["", "\u{0}a\u{e9}\u{20ac}\u{1f600}\r\n", "\u{fffd}", "\u{feff}x", "\u{10ffff}"] {
            XCTAssertTrue(isSame(try decodeUTF8(Array(text.utf8)), text))
        }
        let bad: [[UInt8]] = [
            [0x80], [0xff], [0xc3], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82],
            [0xf8, 0x88, 0x80, 0x80, 0x80], [0x61, 0xfe],
        ]
        for octets in bad { XCTAssertEqual(logErrorCode { _ = try decodeUTF8(octets) }, .malformed, hex(octets)) }
    }

    func testNumbersAsOctets() {
        XCTAssertEqual(bigEndianOctets(0x0102, count: 4), [0, 0, 1, 2])
        XCTAssertEqual(bigEndianOctets(.max, count: 8), [UInt8](repeating: 0xff, count: 8))
        XCTAssertEqual(bigEndian([0xff, 1, 2, 3], at: 1, count: 2), 0x0102)
        XCTAssertEqual(bigEndian([UInt8](repeating: 0xff, count: 8), count: 8), .max)
        XCTAssertEqual(logErrorCode { _ = try ofLength([1], 2) }, .malformed)
        XCTAssertEqual(hex([0, 0x0f, 0xf0, 0xff]), "000ff0ff")
    }
}
