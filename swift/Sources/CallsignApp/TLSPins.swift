import CallsignVerify

/// Keys of which the server has to have one in its chain of certificates.
public struct TLSPins: Sendable, Equatable {
    /// The system's authorities alone decide.
    public static let none = TLSPins(keyHashes: [])

    /// SHA-256 of each SubjectPublicKeyInfo.
    private let keyHashes: [[UInt8]]

    private init(keyHashes: [[UInt8]]) { self.keyHashes = keyHashes }

    /// Of texts, each `sha256/` and base64 of SHA-256 of a public key. Throws `MALFORMED` for a pin of another form.
    public init(_ pins: [String]) throws {
        keyHashes = try pins.map { pin in
            let prefix = Array("sha256/".utf8)
            let octets = Array(pin.utf8)
            guard octets.starts(with: prefix),
                let hash = base64Octets(String(decoding: octets.dropFirst(prefix.count), as: UTF8.self)),
                hash.count == 32
            else { throw CallsignError("MALFORMED", "A TLS pin is sha256/ and base64 of 32 octets.") }
            return hash
        }
    }

    public var isEmpty: Bool { keyHashes.isEmpty }

    /// Whether there are none, or one is of a certificate in this chain, each in DER. The system has to have taken the chain
    /// before.
    public func hold(certificates: [[UInt8]]) -> Bool {
        isEmpty || certificates.contains { certificate in
            guard let key = publicKeyInfo(inCertificate: certificate) else { return false }
            return keyHashes.contains(sha256(key))
        }
    }
}

/// The server's certificate is good for the system, and has none of the keys that the app expects.
public struct TLSPinMismatch: Error {
    public init() {}
}

/// The SubjectPublicKeyInfo of a certificate (RFC 5280, section 4.1), with its tag and length; nil for octets that are none.
func publicKeyInfo(inCertificate der: [UInt8]) -> [UInt8]? {
    let sequence: UInt8 = 0x30
    guard let certificate = element(in: der, from: 0, to: der.count), certificate.tag == sequence,
        let signed = element(in: der, from: certificate.content, to: certificate.end), signed.tag == sequence
    else { return nil }
    var at = signed.content
    // The version is left out of the oldest ones.
    if let version = element(in: der, from: at, to: signed.end), version.tag == 0xa0 { at = version.end }
    // Serial number, signature, issuer, validity and subject.
    for _ in 0..<5 {
        guard let passed = element(in: der, from: at, to: signed.end) else { return nil }
        at = passed.end
    }
    guard let key = element(in: der, from: at, to: signed.end), key.tag == sequence else { return nil }
    return Array(der[at..<key.end])
}

/// One element of DER: its tag, and where its content begins and ends. Nil where it does not end before `end`.
private func element(in der: [UInt8], from start: Int, to end: Int) -> (tag: UInt8, content: Int, end: Int)? {
    guard end - start >= 2 else { return nil }
    let first = der[start + 1]
    if first < 0x80 {
        let content = start + 2
        return content + Int(first) <= end ? (der[start], content, content + Int(first)) : nil
    }
    // Certificates are shorter than 16 MiB.
    let count = Int(first & 0x7f)
    guard (1...3).contains(count), end - start >= 2 + count else { return nil }
    let content = start + 2 + count
    let length = Int(bigEndian(der, at: start + 2, count: count))
    return length <= end - content ? (der[start], content, content + length) : nil
}
