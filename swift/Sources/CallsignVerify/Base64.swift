import Foundation

/// Base64 (RFC 4648, section 4) with its padding.
package func encodeBase64(_ octets: [UInt8]) -> String { Data(octets).base64EncodedString() }

/// The octets that a text spells in its only spelling; nil for any other text.
package func base64Octets(_ text: String) -> [UInt8]? {
    // Decoders differ in what they let pass: line ends, bits that belong to no octet.
    guard let data = Data(base64Encoded: text), isSame(data.base64EncodedString(), text) else { return nil }
    return [UInt8](data)
}

/// As `base64Octets`, but throws `malformed`.
package func decodeBase64(_ text: String) throws(LogError) -> [UInt8] {
    guard let octets = base64Octets(text) else { throw .malformed("text is not base64") }
    return octets
}
