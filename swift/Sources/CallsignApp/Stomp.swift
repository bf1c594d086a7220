// STOMP 1.2 as an app needs it: one frame in each text message of a WebSocket.
import CallsignVerify

struct StompHeader: Sendable, Equatable {
    let name: String
    let value: String

    init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

struct StompFrame: Sendable {
    let command: String
    let headers: [String: String]
    let body: String

    /// Throws `ANSWER_INVALID` for a text that is no frame.
    init(_ text: String) throws {
        let octets = Array(text.utf8)
        guard let headEnd = zip(octets, octets.dropFirst()).enumerated().first(where: { $1 == (lineEnd, lineEnd) })?.offset
        else { throw notStomp() }
        let lines = octets[..<headEnd].split(separator: lineEnd, omittingEmptySubsequences: false)
        command = String(decoding: lines[0], as: UTF8.self)
        let isEscaped = command != "CONNECTED"
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { throw notStomp() }
            // The first of repeated headers counts.
            let name = try plain(line[..<colon], isEscaped)
            let value = try plain(line[(colon + 1)...], isEscaped)
            if headers[name] == nil { headers[name] = value }
        }
        self.headers = headers
        body = String(decoding: octets[(headEnd + 2)...].prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Headers and body have no NUL, and those of CONNECT, which is never escaped, no line end.
    static func format(_ command: String, _ headers: [StompHeader], body: String = "") -> String {
        let isEscaped = command != "CONNECT"
        let lines = headers.map { header in
            isEscaped ? "\(escaped(header.name)):\(escaped(header.value))\n" : "\(header.name):\(header.value)\n"
        }
        return "\(command)\n\(lines.joined())\n\(body)\0"
    }
}

private let lineEnd = UInt8(ascii: "\n")
private let backslash = UInt8(ascii: "\\")

/// The plain octet of each code.
private let escapes: [(plain: UInt8, code: UInt8)] = [
    (backslash, backslash), (lineEnd, UInt8(ascii: "n")), (UInt8(ascii: "\r"), UInt8(ascii: "r")),
    (UInt8(ascii: ":"), UInt8(ascii: "c")),
]

private func escaped(_ text: String) -> String {
    var octets: [UInt8] = []
    for octet in text.utf8 {
        guard let escape = escapes.first(where: { $0.plain == octet }) else {
            octets.append(octet)
            continue
        }
        octets += [backslash, escape.code]
    }
    return String(decoding: octets, as: UTF8.self)
}

private func plain(_ octets: ArraySlice<UInt8>, _ isEscaped: Bool) throws -> String {
    guard isEscaped, octets.contains(backslash) else { return String(decoding: octets, as: UTF8.self) }
    var text: [UInt8] = []
    var left = octets.makeIterator()
    while let octet = left.next() {
        guard octet == backslash else {
            text.append(octet)
            continue
        }
        let code = left.next()
        guard let escape = escapes.first(where: { $0.code == code }) else { throw notStomp() }
        text.append(escape.plain)
    }
    return String(decoding: text, as: UTF8.self)
}

private func notStomp() -> CallsignError {
    CallsignError(CallsignError.LocalCode.answerInvalid, "The server sent a frame that is not STOMP.")
}
