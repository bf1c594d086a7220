import CallsignVerify

// What a text leads to that was scanned, opened or pasted. `test/vectors/contact-scans.json` has examples for all SDKs.

enum Scan: Sendable, Equatable {
    case link(ContactLink)
    case user(UInt64)
}

/// The token of a contact's link, and its fragment, which no server has seen; empty without one.
struct ContactLink: Sendable, Equatable {
    let token: String
    let fragment: String
}

/// A link counts before an id. Nil for any other text, and for one of more than 4,096 UTF-16 units.
func scanIn(_ text: String) -> Scan? {
    if let link = contactLinkIn(text) { return .link(link) }
    guard text.utf16.count <= textLengthMax else { return nil }
    let trimmed = Array(text.utf8).drop(while: isSpace).reversed().drop(while: isSpace).reversed()
    return uint64(String(decoding: trimmed, as: UTF8.self)).map(Scan.user)
}

/// The first link in a text, of any form, or the token by itself.
func contactLinkIn(_ text: String) -> ContactLink? {
    guard text.utf16.count <= textLengthMax else { return nil }
    for word in Array(text.utf8).split(whereSeparator: isSpace) {
        guard let token = tokenIn(Array(word)) else { continue }
        let fragment = word.firstIndex(of: UInt8(ascii: "#")).map { word[$0...] } ?? []
        return ContactLink(token: token, fragment: String(decoding: fragment, as: UTF8.self))
    }
    return nil
}

/// `c_` and 22 letters of base64url, which no other one follows.
private func tokenIn(_ word: [UInt8]) -> String? {
    let starts = word.indices.dropLast(tokenOctets - 1)
    let start = starts.first { at in
        let end = at + tokenOctets
        return word[at] == UInt8(ascii: "c") && word[at + 1] == UInt8(ascii: "_") && word[at + 2..<end].allSatisfy(isOfToken)
            && (end == word.count || !isOfToken(word[end]))
    }
    return start.map { String(decoding: word[$0..<$0 + tokenOctets], as: UTF8.self) }
}

/// No other white space, nor other digits: all platforms agree about these.
private func isSpace(_ octet: UInt8) -> Bool { octet == 0x20 || (0x09...0x0d).contains(octet) }

private func isOfToken(_ octet: UInt8) -> Bool {
    switch octet {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
    default: false
    }
}

private let textLengthMax = 4_096
private let tokenOctets = 24
