/// What the platform does for this package: hashes, AES-GCM, P-256 and RSA. Everything that the key log's verdicts depend on at
/// its edges, such as Ed25519 and the VRF, is this package's own.
package protocol Primitives: Sendable {
    /// 32 octets.
    func sha256(_ octets: [UInt8]) -> [UInt8]

    /// 64 octets.
    func sha512(_ octets: [UInt8]) -> [UInt8]

    /// HMAC with SHA-256: 32 octets.
    func hmacSHA256(key: [UInt8], _ octets: [UInt8]) -> [UInt8]

    /// HMAC with SHA-512: 64 octets.
    func hmacSHA512(key: [UInt8], _ octets: [UInt8]) -> [UInt8]

    /// AES-GCM with a key of 16 or 32 octets and a nonce of 12: the ciphertext, then the tag of 16. Throws `keyInvalid` for other
    /// sizes.
    func sealGCM(key: [UInt8], nonce: [UInt8], _ plaintext: [UInt8], authenticating: [UInt8]) throws(CryptoError) -> [UInt8]

    /// Opens what `sealGCM` gave. Throws `notAuthentic`.
    func openGCM(key: [UInt8], nonce: [UInt8], _ sealed: [UInt8], authenticating: [UInt8]) throws(CryptoError) -> [UInt8]

    /// Whether the octets are an uncompressed point on P-256 (SEC 1, 2.3.3): 65 octets that begin with 4.
    func isP256Point(_ octets: [UInt8]) -> Bool

    /// A private key of P-256, made at random: 32 octets.
    func newP256Key() -> [UInt8]

    /// The uncompressed point of a private key. Throws `keyInvalid` unless it is one.
    func p256Point(ofKey key: [UInt8]) throws(CryptoError) -> [UInt8]

    /// ECDH: the x-coordinate, 32 octets. Throws `keyInvalid` for a point off the curve.
    func p256Agree(key: [UInt8], point: [UInt8]) throws(CryptoError) -> [UInt8]

    /// ECDSA with SHA-256: the 64 octets r || s.
    func p256Sign(key: [UInt8], _ message: [UInt8]) throws(CryptoError) -> [UInt8]

    /// Whether the 64 octets r || s are an ECDSA signature with SHA-256 of the message. False for any odd input; both values of s
    /// are taken.
    func p256Verify(point: [UInt8], _ message: [UInt8], signature: [UInt8]) -> Bool

    /// RSAES-OAEP with SHA-256 and MGF1 with SHA-256, for an RSA-2048 key as SubjectPublicKeyInfo DER. Throws `keyInvalid`.
    func rsaEncrypt(spki: [UInt8], _ plaintext: [UInt8]) throws(CryptoError) -> [UInt8]
}

package enum CryptoError: Error {
    /// Octets that are no key of the kind.
    case keyInvalid

    /// A ciphertext or tag that its key has not made.
    case notAuthentic
}

/// The primitives of this platform.
#if canImport(CryptoKit)
package let platform = CryptoKitPrimitives()
#else
package let platform = OpenSSLPrimitives()
#endif

/// Whether the octets are formed as the SubjectPublicKeyInfo of an RSA-2048 key with an exponent of three octets, as 65537 is. Of
/// another form platforms read what they like: OpenSSL leaves out what follows a shorter key, and SecKey sees no header.
func isRSA2048(_ spki: [UInt8]) -> Bool {
    guard spki.count == rsaSPKIOctets, spki.starts(with: rsaSPKIPrefix) else { return false }
    return spki[rsaSPKIPrefix.count] & 0x80 != 0 && spki[rsaSPKIOctets - 6] & 1 == 1 && spki[rsaSPKIOctets - 5] == 0x02
        && spki[rsaSPKIOctets - 4] == 0x03
}

let rsaSPKIOctets = 294

/// Everything before the 256 octets of the modulus (RFC 3279 and RFC 8017).
private let rsaSPKIPrefix: [UInt8] = [
    0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03, 0x82,
    0x01, 0x0f, 0x00, 0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00,
]

/// Octets at random, from the operating system.
package func randomOctets(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
}
