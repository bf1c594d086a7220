/// An element of ristretto255 (RFC 9496), by one of the points that stand for it.
struct RistrettoElement: Sendable {
    let point: EdwardsPoint

    static let identity = RistrettoElement(point: .identity)
    static let base = RistrettoElement(point: .base)

    static func + (one: RistrettoElement, other: RistrettoElement) -> RistrettoElement {
        RistrettoElement(point: one.point + other.point)
    }

    /// RFC 9496, 4.3.2.
    var octets: [UInt8] {
        let (x0, y0, z0, t0) = (point.x, point.y, point.z, point.t)
        let u1 = (z0 + y0) * (z0 - y0)
        let u2 = x0 * y0
        let (_, root) = Field25519.rootOfRatio(.one, u1 * u2.squared)
        let (den1, den2) = (root * u1, root * u2)
        let zInverse = den1 * den2 * t0
        let isRotated = (t0 * zInverse).isNegative
        let x = isRotated ? y0 * Field25519.rootOfMinusOne : x0
        let y = isRotated ? x0 * Field25519.rootOfMinusOne : y0
        let denominator = isRotated ? den1 * invSqrtAMinusD : den2
        return (denominator * (z0 - ((x * zInverse).isNegative ? -y : y))).absolute.octets
    }
}

extension RistrettoElement {
    /// RFC 9496, 4.3.1; nil for octets that are not the encoding of an element.
    init?(octets: [UInt8]) {
        guard octets.count == fieldOctets else { return nil }
        let s = Field25519(octets: octets)
        guard s.octets == octets, !s.isNegative else { return nil }
        let sSquared = s.squared
        let (u1, u2) = (.one - sSquared, .one + sSquared)
        let u2Squared = u2.squared
        let v = -(EdwardsPoint.d * u1.squared) - u2Squared
        let (isSquare, root) = Field25519.rootOfRatio(.one, v * u2Squared)
        let denX = root * u2
        let denY = root * denX * v
        let x = ((s + s) * denX).absolute
        let y = u1 * denY
        let t = x * y
        guard isSquare, !t.isNegative, !y.isZero else { return nil }
        point = EdwardsPoint(x: x, y: y, z: .one, t: t)
    }

    /// The element that 64 octets are mapped to (RFC 9496, 4.3.4).
    init(uniform octets: [UInt8]) {
        precondition(octets.count == 2 * fieldOctets)
        point = mapped(octets.prefix(fieldOctets)) + mapped(octets.suffix(fieldOctets))
    }
}

/// MAP of RFC 9496, 4.3.4.
private func mapped(_ octets: ArraySlice<UInt8>) -> EdwardsPoint {
    let t = Field25519(octets: octets)
    let r = Field25519.rootOfMinusOne * t.squared
    let u = (r + .one) * oneMinusDSquared
    let v = (-.one - r * EdwardsPoint.d) * (r + EdwardsPoint.d)
    let (isSquare, root) = Field25519.rootOfRatio(u, v)
    let s = isSquare ? root : -(root * t).absolute
    let c = isSquare ? -.one : r
    let n = c * (r - .one) * dMinusOneSquared - v
    let sSquared = s.squared
    let (w0, w1) = ((s + s) * v, n * sqrtADMinusOne)
    let (w2, w3) = (.one - sSquared, .one + sSquared)
    return EdwardsPoint(x: w0 * w3, y: w2 * w1, z: w1 * w3, t: w0 * w2)
}

/// RFC 9496, 4.1.
private let sqrtADMinusOne = Field25519(octets: [
    0x1b, 0x2e, 0x7b, 0x49, 0xa0, 0xf6, 0x97, 0x7e, 0xbd, 0x54, 0x78, 0x1b, 0x0c, 0x8e, 0x9d, 0xaf,
    0xfd, 0xd1, 0xf5, 0x31, 0xc9, 0xfc, 0x3c, 0x0f, 0xac, 0x48, 0x83, 0x2b, 0xbf, 0x31, 0x69, 0x37,
])
private let invSqrtAMinusD = Field25519(octets: [
    0xea, 0x40, 0x5d, 0x80, 0xaa, 0xfd, 0xc8, 0x99, 0xbe, 0x72, 0x41, 0x5a, 0x17, 0x16, 0x2f, 0x9d,
    0x40, 0xd8, 0x01, 0xfe, 0x91, 0x7b, 0xc2, 0x16, 0xa2, 0xfc, 0xaf, 0xcf, 0x05, 0x89, 0x6c, 0x78,
])
private let oneMinusDSquared = .one - EdwardsPoint.d.squared
private let dMinusOneSquared = (EdwardsPoint.d - .one).squared
