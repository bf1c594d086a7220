/// A point on the curve of Ed25519 (RFC 8032, 5.1): (X : Y : Z : T) with x = X / Z, y = Y / Z and x y = T / Z.
struct EdwardsPoint: Sendable {
    let x: Field25519
    let y: Field25519
    let z: Field25519
    let t: Field25519

    static let identity = EdwardsPoint(x: .zero, y: .one, z: .one, t: .zero)

    static let base: EdwardsPoint = {
        let x = Field25519(octets: [
            0x1a, 0xd5, 0x25, 0x8f, 0x60, 0x2d, 0x56, 0xc9, 0xb2, 0xa7, 0x25, 0x95, 0x60, 0xc7, 0x2c, 0x69,
            0x5c, 0xdc, 0xd6, 0xfd, 0x31, 0xe2, 0xa4, 0xc0, 0xfe, 0x53, 0x6e, 0xcd, 0xd3, 0x36, 0x69, 0x21,
        ])
        let y = Field25519(octets: [0x58] + [UInt8](repeating: 0x66, count: 31))
        return EdwardsPoint(x: x, y: y, z: .one, t: x * y)
    }()

    /// D of RFC 9496, 4.1.
    static let d = Field25519(octets: [
        0xa3, 0x78, 0x59, 0x13, 0xca, 0x4d, 0xeb, 0x75, 0xab, 0xd8, 0x41, 0x41, 0x4d, 0x0a, 0x70, 0x00,
        0x98, 0xe8, 0x79, 0x77, 0x79, 0x40, 0xc7, 0x8c, 0x73, 0xfe, 0x6f, 0x2b, 0xee, 0x6c, 0x03, 0x52,
    ])

    /// RFC 8032, 5.1.2.
    var octets: [UInt8] {
        let inverse = z.inverse
        var octets = (y * inverse).octets
        if (x * inverse).isNegative { octets[fieldOctets - 1] |= 0x80 }
        return octets
    }

    /// Whether eight times the point is the identity.
    var isSmallOrder: Bool {
        let eightfold = doubled.point.doubled.point.doubled.point
        return eightfold.x.isZero && eightfold.y == eightfold.z
    }

    /// RFC 8032, 5.1.4.
    var doubled: Sum { Sum(doubling: x, y, z) }

    static prefix func - (point: EdwardsPoint) -> EdwardsPoint {
        EdwardsPoint(x: -point.x, y: point.y, z: point.z, t: -point.t)
    }

    static func + (one: EdwardsPoint, other: EdwardsPoint) -> EdwardsPoint { Sum(one, Addend(other)).point }
}

extension EdwardsPoint {
    /// RFC 8032, 5.1.3; nil for octets that are no point, or another spelling of one.
    init?(octets: [UInt8]) {
        guard octets.count == fieldOctets else { return nil }
        let y = Field25519(octets: octets)
        let ySquared = y.squared
        let (isSquare, root) = Field25519.rootOfRatio(ySquared - .one, Self.d * ySquared + .one)
        guard isSquare else { return nil }
        let x = octets[fieldOctets - 1] & 0x80 == 0 ? root : -root
        self.init(x: x, y: y, z: .one, t: x * y)
        // A y not below the prime, and a zero x with a sign, are written differently.
        guard self.octets == octets else { return nil }
    }
}

/// A point as additions and doublings give it: x = E / G and y = H / F. A doubling needs only three of the products that `point`
/// comes to.
struct Sum {
    private let e: Field25519
    private let f: Field25519
    private let g: Field25519
    private let h: Field25519

    static let identity = Sum(EdwardsPoint.identity, Addend(.identity))

    /// RFC 8032, 5.1.4: the formula has no exceptions.
    init(_ point: EdwardsPoint, _ addend: Addend) {
        let a = (point.y - point.x) * addend.yMinusX
        let b = (point.y + point.x) * addend.yPlusX
        let c = point.t * addend.t2D
        let d = point.z * addend.z2
        (e, f, g, h) = (b - a, d - c, d + c, b + a)
    }

    fileprivate init(doubling x: Field25519, _ y: Field25519, _ z: Field25519) {
        let (a, b, zSquared) = (x.squared, y.squared, z.squared)
        let both = a + b
        let difference = a - b
        (e, f, g, h) = (both - (x + y).squared, zSquared + zSquared + difference, difference, both)
    }

    var doubled: Sum { Sum(doubling: e * f, g * h, f * g) }

    var point: EdwardsPoint { EdwardsPoint(x: e * f, y: g * h, z: f * g, t: e * h) }
}

/// A point made ready to be added.
struct Addend: Sendable {
    fileprivate let yPlusX: Field25519
    fileprivate let yMinusX: Field25519
    fileprivate let z2: Field25519
    fileprivate let t2D: Field25519

    init(_ point: EdwardsPoint) {
        yPlusX = point.y + point.x
        yMinusX = point.y - point.x
        z2 = point.z + point.z
        t2D = point.t * Self.twiceD
    }

    private init(yPlusX: Field25519, yMinusX: Field25519, z2: Field25519, t2D: Field25519) {
        self.yPlusX = yPlusX
        self.yMinusX = yMinusX
        self.z2 = z2
        self.t2D = t2D
    }

    static prefix func - (addend: Addend) -> Addend {
        Addend(yPlusX: addend.yMinusX, yMinusX: addend.yPlusX, z2: addend.z2, t2D: -addend.t2D)
    }

    private static let twiceD = EdwardsPoint.d + EdwardsPoint.d
}

/// The odd multiples 1, 3, 5... of a point, to multiply it with.
struct Multiples: Sendable {
    /// How many binary digits of a factor one addition is for.
    fileprivate let width: Int
    private let odd: [Addend]

    /// Four bits are best for a point that is multiplied once.
    init(_ point: EdwardsPoint, width: Int = 5) {
        let twice = Addend(point.doubled.point)
        var points = [point]
        for _ in 1..<1 << (width - 2) { points.append(Sum(points[points.count - 1], twice).point) }
        self.width = width
        odd = points.map(Addend.init)
    }

    static let ofBase = Multiples(.base, width: 8)

    /// The point `digit` times, for an odd digit.
    fileprivate func times(_ digit: Int8) -> Addend {
        let addend = odd[Int(digit.magnitude) / 2]
        return digit < 0 ? -addend : addend
    }
}

/// k times one point and l times another, both from the highest bit on (Straus).
func sumOfMultiples(_ k: Scalar25519, _ one: Multiples, _ l: Scalar25519, _ other: Multiples) -> EdwardsPoint {
    let kDigits = k.digits(width: one.width)
    let lDigits = l.digits(width: other.width)
    var sum = Sum.identity
    for (kDigit, lDigit) in zip(kDigits, lDigits).reversed() {
        sum = sum.doubled
        if kDigit != 0 { sum = Sum(sum.point, one.times(kDigit)) }
        if lDigit != 0 { sum = Sum(sum.point, other.times(lDigit)) }
    }
    return sum.point
}
