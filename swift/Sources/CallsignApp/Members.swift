// The server's JSON, read member by member. A member that is missing, or of another form, is `ANSWER_INVALID`.
import CallsignVerify

extension [String: JSONValue] {
    /// The text of a member, of a number too: some operators' servers send ids as numbers.
    func text(_ name: String) -> String? { self[name].flatMap(textOf) }

    func number(_ name: String) -> Int? { text(name).flatMap(wholeNumber) }

    func id(_ name: String) -> UInt64? { text(name).flatMap(uint64) }

    func flag(_ name: String) -> Bool { text(name) == "true" }

    func needText(_ name: String) throws -> String { try needed(text(name)) }

    func needNumber(_ name: String) throws -> Int { try needed(number(name)) }

    func needId(_ name: String) throws -> UInt64 { try needed(id(name)) }

    func member(_ name: String) throws -> [String: JSONValue] { try needed(self[name]?.object) }

    func members(_ name: String) throws -> [[String: JSONValue]] { try needed(self[name]?.array).map { try needed($0.object) } }

    /// The whole numbers of a list; none where there is no list.
    func numbers(_ name: String) -> [Int] { (self[name]?.array ?? []).compactMap(textOf).compactMap(wholeNumber) }

    func texts(_ name: String) throws -> [String] { try needed(self[name]?.array).map { try needed(textOf($0)) } }

    /// Nil where there is no such member.
    func textsOrNil(_ name: String) throws -> [String]? { self[name] == nil ? nil : try texts(name) }

    /// POSIX time in milliseconds of a time as RFC 3339 writes it.
    func needTimeMs(_ name: String) throws -> Int { try timeMsOf(needText(name)) }

    /// A duration in milliseconds, of a number of seconds. One that is too long for sums with the time is cut.
    func needDurationMs(_ name: String) throws -> Int {
        let seconds = try needed(text(name).flatMap(Double.init).flatMap { $0.isNaN ? nil : $0 })
        return Int(1_000 * Swift.min(Swift.max(seconds, 0), durationMaxS))
    }
}

private let durationMaxS = 1e9

private func needed<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw answerInvalid() }
    return value
}

private func textOf(_ value: JSONValue) -> String? {
    switch value {
    case .string(let text), .number(let text): text
    case .bool(let flag): flag ? "true" : "false"
    case .object, .array, .null: nil
    }
}

/// Nil for a text that is no number, and for one with a plus sign, which `Int` takes.
func wholeNumber(_ text: String) -> Int? { text.utf8.first == UInt8(ascii: "+") ? nil : Int(text) }

/// Throws `ANSWER_INVALID` for what is no time in UTC as RFC 3339 writes it.
func timeMsOf(_ text: String) throws -> Int { try needed(timeMsOrNil(text)) }

/// As `2026-11-30T08:09:10.123Z`.
func timeMsOrNil(_ text: String) -> Int? {
    let octets = Array(text.utf8)
    guard (20...30).contains(octets.count), octets.last == UInt8(ascii: "Z") else { return nil }
    func number(_ at: Int, _ count: Int) -> Int? {
        let digits = octets[at..<at + count]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { 10 * $0 + Int($1 - 0x30) }
    }
    let marks: [Int: UInt8] = [4: 0x2d, 7: 0x2d, 10: UInt8(ascii: "T"), 13: 0x3a, 16: 0x3a]
    guard marks.allSatisfy({ octets[$0.key] == $0.value }),
        let year = number(0, 4), let month = number(5, 2), let day = number(8, 2),
        let hour = number(11, 2), let minute = number(14, 2), let second = number(17, 2),
        (1...12).contains(month), (1...daysIn(month, of: year)).contains(day), hour < 24, minute < 60, second < 60,
        let fractionMs = fractionMs(Array(octets[19..<octets.count - 1]))
    else { return nil }
    let seconds = ((daysTo(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return 1_000 * seconds + fractionMs
}

/// Of a point and up to nine digits, or of nothing.
private func fractionMs(_ octets: [UInt8]) -> Int? {
    if octets.isEmpty { return 0 }
    let digits = octets.dropFirst()
    guard octets[0] == UInt8(ascii: "."), (1...9).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    return (Array(digits) + [0x30, 0x30]).prefix(3).reduce(0) { 10 * $0 + Int($1 - 0x30) }
}

private func daysIn(_ month: Int, of year: Int) -> Int {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
}

/// Days from 1970-01-01 to this date.
private func daysTo(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let daysOfMonths = (1..<month).reduce(0) { $0 + daysIn($1, of: year) }
    return 365 * (year - 1970) + leapDays(before: year) - leapDays(before: 1970) + daysOfMonths + day - 1
}

/// Counted from a year far enough back that no number is negative.
private func leapDays(before year: Int) -> Int {
    let years = year + 3_999
    return years / 4 - years / 100 + years / 400
}

/// Nil for a text that is no JSON object.
func objectIn(_ text: String) -> [String: JSONValue]? { JSONValue(text)?.object }

/// The member of an enumeration whose raw values are the server's names in small letters; nil for one that this version does not
/// know.
func namedOrNil<Name: RawRepresentable>(_ text: String?) -> Name? where Name.RawValue == String {
    text.flatMap { Name(rawValue: $0.lowercased()) }
}

/// The sixteen octets of a session's, a challenge's or a waiting sign-in's id, which is base64url; nil for another text.
func octetsOfId(_ id: String) -> [UInt8]? {
    let letters = id.utf8.map { octet in
        switch octet {
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        case UInt8(ascii: "+"), UInt8(ascii: "/"): UInt8(ascii: "!")
        default: octet
        }
    }
    let isPadded = letters.last == UInt8(ascii: "=")
    let octets = base64Octets(String(decoding: isPadded ? letters : letters + Array("==".utf8), as: UTF8.self))
    return octets?.count == idOctets ? octets : nil
}

private let idOctets = 16

func idsOf(_ userIds: some Sequence<UInt64>) -> JSONValue { .array(userIds.map { .string("\($0)") }) }
