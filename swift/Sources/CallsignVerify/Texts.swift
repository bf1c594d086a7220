// Texts of strangers are read octet by octet: a `Character` of Swift can be several scalars, such as a newline after a carriage
// return, and Swift's own comparison takes different spellings for the same.

let newline = UInt8(ascii: "\n")

/// What stands between the newlines: one part more than there are newlines.
func linesOf(_ octets: some Sequence<UInt8>) -> [ArraySlice<UInt8>] {
    Array(octets).split(separator: newline, omittingEmptySubsequences: false)
}

/// The text that the octets of a text spell, or those of whole lines or words of one.
func textOf(_ octets: some Collection<UInt8>) -> String { String(decoding: octets, as: UTF8.self) }

/// What follows the prefix; nil where the octets do not begin with it.
func after(_ prefix: String, in octets: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    octets.starts(with: prefix.utf8) ? octets.dropFirst(prefix.utf8.count) : nil
}

/// The text before its first newline; all of it where it has none.
func firstLine(of text: String) -> String { textOf(text.utf8.prefix { $0 != newline }) }

/// The beginning of a stranger's text, to quote in a detail.
func quotable(_ text: String, scalars: Int) -> String {
    var quoted = String.UnicodeScalarView()
    quoted.append(contentsOf: text.unicodeScalars.prefix(scalars))
    return String(quoted)
}
