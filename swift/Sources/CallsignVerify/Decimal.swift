// Decimal numbers as the formats of the log write them: ASCII digits, no sign, no leading zero.

/// Sizes and indexes are numbers that every implementation, JavaScript too, has exactly: up to 2^53 - 1.
package let safeMax = 1 << 53 - 1

/// The number that the text spells. Throws `malformed` for any other spelling and above 2^53 - 1.
func parseDecimal(_ text: String) throws(LogError) -> Int {
    guard let value = uint64(text), value <= UInt64(safeMax) else {
        throw .malformed("\"\(quotable(text, scalars: 24))\" is not a number below 2^53")
    }
    return Int(value)
}

/// The number with zeros before it.
func padded(_ value: Int, digits: Int) -> String {
    let text = "\(value)"
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
}
