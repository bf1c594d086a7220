/// A value of JSON (RFC 8259). Foundation's reader differs from one system to another, and numbers above 2^53 lose digits in it.
public enum JSONValue: Sendable, Equatable {
    case object([String: JSONValue])
    case array([JSONValue])
    case string(String)

    /// As it is written.
    case number(String)
    case bool(Bool)
    case null

    /// Nil for a text that is not JSON, or nested in more than 32 levels. Of two members of one name the last one counts.
    public init?(_ text: String) {
        self.init(octets: Array(text.utf8))
    }

    /// As of a text in UTF-8. `half` takes the place of half a surrogate pair, which is no Unicode.
    public init?(octets: [UInt8], half: Unicode.Scalar = "\u{fffd}") {
        var reader = JSONReader(octets, half)
        guard let value = reader.whole() else { return nil }
        self = value
    }

    public init(_ number: Int) { self = .number("\(number)") }

    /// JSON without spaces, members in the order of their names.
    public var text: String {
        switch self {
        case .object(let members):
            let written = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
                .map { "\(quoted($0.key)):\($0.value.text)" }
            return "{\(written.joined(separator: ","))}"
        case .array(let values): return "[\(values.map(\.text).joined(separator: ","))]"
        case .string(let text): return quoted(text)
        case .number(let digits): return digits
        case .bool(let flag): return flag ? "true" : "false"
        case .null: return "null"
        }
    }

    /// A member of an object; nil where it is not there or this is no object.
    public subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    public var array: [JSONValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    public var object: [String: JSONValue]? {
        if case .object(let members) = self { members } else { nil }
    }

    public var bool: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    /// A number without fraction or exponent.
    public var int: Int? {
        if case .number(let digits) = self { Int(digits) } else { nil }
    }

    public var isNull: Bool { self == .null }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral
{
    public init(stringLiteral text: String) { self = .string(text) }
    public init(booleanLiteral flag: Bool) { self = .bool(flag) }
    public init(integerLiteral number: Int) { self = .number("\(number)") }
    public init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(Dictionary(members) { $1 }) }
    public init(arrayLiteral values: JSONValue...) { self = .array(values) }
}

private func quoted(_ text: String) -> String {
    var written = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": written += "\\\""
        case "\\": written += "\\\\"
        case "\n": written += "\\n"
        case "\r": written += "\\r"
        case "\t": written += "\\t"
        case "\u{0}"..<"\u{20}": written += "\\u00\(scalar.value < 16 ? "0" : "")\(String(scalar.value, radix: 16))"
        default: written.unicodeScalars.append(scalar)
        }
    }
    return written + "\""
}

/// Whether Swift takes the name for one of ASCII letters alone, though it is none: U+212A, the sign of kelvin, is the same as "K"
/// to a dictionary. No other reader finds such a member by that name, so it is left out.
private func isTakenForASCII(_ name: String) -> Bool {
    guard name.utf8.contains(where: { $0 >= 0x80 }) else { return false }
    let folded = String(String.UnicodeScalarView(name.unicodeScalars.map { asciiOf[$0] ?? $0 }))
    return folded.utf8.allSatisfy { $0 < 0x80 }
}

/// Every character that is canonically the same as one of ASCII (Unicode Standard, 3.7).
private let asciiOf: [Unicode.Scalar: Unicode.Scalar] = ["\u{37e}": ";", "\u{1fef}": "`", "\u{212a}": "K"]

private struct JSONReader {
    /// No answer of a log has more than four.
    private static let depthMax = 32

    private let octets: [UInt8]
    private let half: Unicode.Scalar
    private var at = 0
    private var depth = 0

    init(_ octets: [UInt8], _ half: Unicode.Scalar) {
        self.octets = octets
        self.half = half
    }

    mutating func whole() -> JSONValue? {
        guard let value = value() else { return nil }
        skipSpace()
        return at == octets.count ? value : nil
    }

    private var next: UInt8? { at < octets.count ? octets[at] : nil }

    private mutating func skipSpace() {
        while let octet = next, octet == 0x20 || octet == 0x0a || octet == 0x0d || octet == 0x09 { at += 1 }
    }

    private mutating func take(_ octet: UInt8) -> Bool {
        skipSpace()
        guard next == octet else { return false }
        at += 1
        return true
    }

    private mutating func value() -> JSONValue? {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return nested { $0.object() }
        case UInt8(ascii: "["): return nested { $0.array() }
        case UInt8(ascii: "\""): return string().map(JSONValue.string)
        case UInt8(ascii: "t"): return word("true", .bool(true))
        case UInt8(ascii: "f"): return word("false", .bool(false))
        case UInt8(ascii: "n"): return word("null", .null)
        default: return number()
        }
    }

    private mutating func nested(_ read: (inout JSONReader) -> JSONValue?) -> JSONValue? {
        depth += 1
        defer { depth -= 1 }
        at += 1
        return depth > Self.depthMax ? nil : read(&self)
    }

    private mutating func object() -> JSONValue? {
        var members: [String: JSONValue] = [:]
        if take(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipSpace()
            guard let name = string(), take(UInt8(ascii: ":")), let value = value() else { return nil }
            if !isTakenForASCII(name) { members[name] = value }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? .object(members) : nil
    }

    private mutating func array() -> JSONValue? {
        var values: [JSONValue] = []
        if take(UInt8(ascii: "]")) { return .array(values) }
        repeat {
            guard let value = value() else { return nil }
            values.append(value)
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) ? .array(values) : nil
    }

    private mutating func word(_ word: String, _ value: JSONValue) -> JSONValue? {
        guard octets[at...].starts(with: word.utf8) else { return nil }
        at += word.utf8.count
        return value
    }

    private mutating func number() -> JSONValue? {
        let start = at
        if next == UInt8(ascii: "-") { at += 1 }
        if next == UInt8(ascii: "0") { at += 1 } else if !digits() { return nil }
        if next == UInt8(ascii: ".") {
            at += 1
            if !digits() { return nil }
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            at += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { at += 1 }
            if !digits() { return nil }
        }
        return .number(String(decoding: octets[start..<at], as: UTF8.self))
    }

    private mutating func digits() -> Bool {
        let start = at
        while let octet = next, (0x30...0x39).contains(octet) { at += 1 }
        return at > start
    }

    private mutating func string() -> String? {
        guard next == UInt8(ascii: "\"") else { return nil }
        at += 1
        var text: [UInt8] = []
        while let octet = next {
            at += 1
            switch octet {
            case UInt8(ascii: "\""):
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = escaped() else { return nil }
                text += Array(String(Character(escaped)).utf8)
            case 0..<0x20: return nil
            default: text.append(octet)
            }
        }
        return nil
    }

    private mutating func escaped() -> Unicode.Scalar? {
        guard let octet = next else { return nil }
        at += 1
        switch octet {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(octet)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return unicode()
        default: return nil
        }
    }

    private mutating func unicode() -> Unicode.Scalar? {
        guard let first = unit() else { return nil }
        guard (0xd800..<0xdc00).contains(first) else { return Unicode.Scalar(first) ?? half }
        let afterFirst = at
        guard octets[at...].starts(with: "\\u".utf8) else { return half }
        at += 2
        guard let second = unit() else { return nil }
        guard (0xdc00..<0xe000).contains(second) else {
            at = afterFirst
            return half
        }
        return Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    }

    private mutating func unit() -> UInt32? {
        guard at + 4 <= octets.count else { return nil }
        let digits = octets[at..<at + 4]
        at += 4
        var unit: UInt32 = 0
        for digit in digits {
            guard let value = Character(Unicode.Scalar(digit)).hexDigitValue, digit < 0x80 else { return nil }
            unit = unit << 4 | UInt32(value)
        }
        return unit
    }
}
