// Points of P-256, and signatures by them as device lists have them. The platform verifies; the form of keys and signatures is
// checked here, where platforms differ. Numbers are 32 octets each, big-endian.

import CallsignCrypto

/// Whether the octets are an uncompressed point on P-256 (SEC 1, 3.2.2.1): what a device list has as a signing key.
public func isSigningKey(_ octets: [UInt8]) -> Bool {
    guard octets.count == pointOctets, octets[0] == 4 else { return false }
    return isBelow(octets[1..<33], prime) && isBelow(octets[33...], prime) && platform.isP256Point(octets)
}

/// Whether the 64 octets r || s are an ECDSA signature with SHA-256 of the message by the uncompressed P-256 point. False for any
/// odd input. Both values of s are taken.
package func p256Verify(publicKey: [UInt8], message: [UInt8], signature: [UInt8]) -> Bool {
    guard isSigningKey(publicKey), signature.count == signatureOctets, isInOrder(signature[..<32]), isInOrder(signature[32...])
    else { return false }
    return platform.p256Verify(point: publicKey, message, signature: signature)
}

/// Whether a signature r || s has the higher of its two s.
func hasHighS(_ signature: [UInt8]) -> Bool { isBelow(halfOrder[...], signature.dropFirst(32)) }

/// The signature r || s with the lower of its two s. Key stores give either.
public func withLowS(_ signature: [UInt8]) throws(LogError) -> [UInt8] {
    _ = try ofLength(signature, signatureOctets)
    guard hasHighS(signature), isBelow(signature[32...], order) else { return signature }
    var low = signature
    var borrow = 0
    for at in order.indices.reversed() {
        let rest = Int(order[at]) - Int(signature[32 + at]) - borrow
        low[32 + at] = UInt8(rest & 0xff)
        borrow = rest < 0 ? 1 : 0
    }
    return low
}

private func isInOrder(_ value: ArraySlice<UInt8>) -> Bool { value.contains { $0 != 0 } && isBelow(value, order) }

private func isBelow(_ one: ArraySlice<UInt8>, _ other: ArraySlice<UInt8>) -> Bool { one.lexicographicallyPrecedes(other) }

private let pointOctets = 65
private let signatureOctets = 64

/// The curve's prime (SP 800-186, 3.2.1.3).
private let prime: ArraySlice<UInt8> = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
]

/// The number of points on the curve, and half of it.
private let order: ArraySlice<UInt8> = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
]
private let halfOrder: [UInt8] = [
    0x7f, 0xff, 0xff, 0xff, 0x80, 0x00, 0x00, 0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xde, 0x73, 0x7d, 0x56, 0xd3, 0x8b, 0xcf, 0x42, 0x79, 0xdc, 0xe5, 0x61, 0x7e, 0x31, 0x92, 0xa8,
]
