import CallsignCrypto

/// SHA-256 of the parts, one after the other: 32 octets.
package func sha256(_ parts: [UInt8]...) -> [UInt8] { platform.sha256(Array(parts.joined())) }

/// SHA-512 of the parts, one after the other: 64 octets.
package func sha512(_ parts: [UInt8]...) -> [UInt8] { platform.sha512(Array(parts.joined())) }

/// Whether two texts have the same octets. Swift's own `==` takes different spellings of one character for the same.
package func isSame(_ one: String, _ other: String) -> Bool { one.utf8.elementsEqual(other.utf8) }

/// Throws `malformed` for octets that are not UTF-8.
package func decodeUTF8(_ octets: [UInt8]) throws(LogError) -> String {
    let text = String(decoding: octets, as: UTF8.self)
    // What is not UTF-8 was replaced.
    guard text.utf8.elementsEqual(octets) else { throw .malformed("text is not UTF-8") }
    return text
}

/// The octets themselves. Throws `malformed` unless there are `length` of them.
package func ofLength(_ octets: [UInt8], _ length: Int) throws(LogError) -> [UInt8] {
    if octets.count != length { throw .malformed("\(octets.count) octets where \(length) belong") }
    return octets
}

/// The big-endian unsigned number in `count` octets from `at` on; eight at most.
package func bigEndian(_ octets: [UInt8], at: Int = 0, count: Int) -> UInt64 {
    octets[at..<at + count].reduce(0) { $0 << 8 | UInt64($1) }
}

/// The number in `count` octets, big-endian.
package func bigEndianOctets(_ value: UInt64, count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
}

/// The uint64 that a decimal text without sign or leading zeros spells; nil for any other text.
package func uint64(_ text: String) -> UInt64? {
    let digits = Array(text.utf8)
    guard (1...20).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return digits[0] == 0x30 && digits.count > 1 ? nil : UInt64(text)
}

/// Lower-case hexadecimal.
package func hex(_ octets: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: octets.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
