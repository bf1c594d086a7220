import TestSupport
import XCTest

@testable import CallsignVerify

/// The arithmetic of Ed25519 and ristretto255 against slow arithmetic that is plainly right.
final class FieldTests: XCTestCase {
    /// Numbers at each bound of the field and of its limbs, and others.
    private let numbers: [Big] = {
        let bounds = [
            Big(0), Big(1), Big(2), Big(18), Big(19), Big(20), Big.prime - Big(2), .prime - Big(1), .prime, .prime + Big(1),
            .prime + Big(17), .prime + Big(18), .power(254), .power(254) - Big(1),
        ]
        let ofLimbs = [51, 102, 153, 204].flatMap { [Big.power($0) - Big(1), Big.power($0)] }
        let others = (0..<12).map { Big(octets: octetsOf("field \($0)")) % .power(255) }
        return bounds + ofLimbs + others
    }()

    private func field(_ number: Big) -> Field25519 { Field25519(octets: number.octets()) }

    private func same(_ own: Field25519, _ number: Big, _ what: @autoclosure () -> String) {
        XCTAssertEqual(own.octets, (number % .prime).octets(), what())
    }

    func testNumbersComeOutAsTheirLeastOnes() {
        for number in numbers {
            same(field(number), number, "\(number)")
            var octets = number.octets()
            octets[31] |= 0x80
            same(Field25519(octets: octets), number, "with the highest bit")
            let least = number % .prime
            XCTAssertEqual(field(number).isZero, least == Big(0))
            XCTAssertEqual(field(number).isNegative, least.bit(0))
            same(-field(number), .prime - least, "-\(number)")
            same(field(number).absolute, least.bit(0) ? .prime - least : least, "absolute")
        }
    }

    func testSumsDifferencesAndProducts() {
        for one in numbers {
            same(field(one).squared, one * one, "\(one) squared")
            for other in numbers {
                same(field(one) + field(other), one + other, "\(one) + \(other)")
                same(field(one) - field(other), one + .prime + .prime - other, "\(one) - \(other)")
                same(field(one) * field(other), one * other, "\(one) * \(other)")
                XCTAssertEqual(field(one) == field(other), one % .prime == other % .prime)
            }
        }
    }

    /// What an operation gives has limbs that no octets have.
    func testLongChainsOfOperations() {
        let choices = octetsOf("chain", 64) + octetsOf("chain on", 64) + octetsOf("chain further", 64)
        for start in numbers {
            var own = field(start)
            var number = start
            for choice in choices.prefix(40) {
                let operand = numbers[Int(choice) / 4 % numbers.count]
                switch choice % 4 {
                case 0: (own, number) = (own + own, number + number)
                case 1: (own, number) = (field(operand) - own, operand + .prime - number % .prime)
                case 2:
                    own = own - field(operand) - own.squared
                    number = number + .prime * Big(3) - operand - number * number % .prime
                default: (own, number) = (own * own.squared, number * number % .prime * number)
                }
                number = number % .prime
            }
            same(own, number, "\(start)")
        }
    }

    func testInversesAndRoots() {
        let rootOfMinusOne = Field25519.rootOfMinusOne
        XCTAssertEqual(rootOfMinusOne.squared, -.one)
        XCTAssertTrue(Field25519.zero.inverse.isZero)
        for one in numbers {
            let u = field(one)
            if !u.isZero { XCTAssertEqual(u * u.inverse, .one) }
            for v in numbers.map(field) {
                let (isSquare, root) = Field25519.rootOfRatio(u, v)
                XCTAssertFalse(root.isNegative)
                if u.isZero || v.isZero {
                    XCTAssertTrue(root.isZero)
                    // RFC 9496, 4.2: no ratio over zero is a square, but that of zero is said to be one.
                    XCTAssertEqual(isSquare, u.isZero)
                } else {
                    // SQRT_M1 is no square, so that one of both can hold only.
                    XCTAssertEqual(root.squared * v, isSquare ? u : u * rootOfMinusOne)
                }
            }
        }
    }
}

final class ScalarTests: XCTestCase {
    func testOnlyNumbersBelowTheOrderAreScalars() {
        for number in [Big(0), Big(1), .order - Big(1), .power(252), .power(128)] {
            XCTAssertNotNil(Scalar25519(octets: number.octets()[...]))
        }
        let beyond: [Big] = [.order, .order + Big(1), .order + .power(128), .power(253), .power(256) - Big(1), .order + .order]
        for number in beyond { XCTAssertNil(Scalar25519(octets: number.octets()[...])) }
        XCTAssertEqual(Scalar25519(octets: [7, 1]), Scalar25519(octets: Big(263).octets()[...]))
    }

    func testWideNumbersAreReduced() {
        let bounds: [Big] = [
            Big(0), Big(1), .order - Big(1), .order, .order + Big(1), .power(260) - Big(1), .power(260), .power(512) - Big(1),
            .order * .order, .order * .order - Big(1), .order * .power(259), .power(252), .power(253) - Big(1),
        ]
        for number in bounds + (0..<100).map({ Big(octets: octetsOf("wide \($0)", 64)) }) {
            let expected = Scalar25519(octets: (number % .order).octets()[...])
            XCTAssertNotNil(expected)
            XCTAssertEqual(Scalar25519(reducing: number.octets(64)), expected)
        }
    }

    func testDigitsSumUpToTheNumber() throws {
        let numbers = [Big(0), Big(1), Big(255), .order - Big(1), .power(252), .power(252) - Big(1), .power(128) - Big(1)]
        for number in numbers + (0..<50).map({ Big(octets: octetsOf("digits \($0)")) % .order }) {
            let scalar = try known(Scalar25519(octets: number.octets()[...]), "scalar")
            for width in 2...8 {
                let digits = scalar.digits(width: width)
                var (sum, below) = (Big(0), Big(0))
                for (at, digit) in digits.enumerated() where digit != 0 {
                    XCTAssertTrue(digit & 1 == 1 && digit.magnitude < 1 << (width - 1))
                    XCTAssertTrue(digits[(at + 1)..<min(at + width, 256)].allSatisfy { $0 == 0 })
                    let part = Big.power(at) * Big(UInt32(digit.magnitude))
                    if digit > 0 { sum = sum + part } else { below = below + part }
                }
                XCTAssertEqual(sum, number + below)
            }
        }
    }
}

final class PointTests: XCTestCase {
    /// Eight points, whose multiples by eight are the identity.
    static let torsion: [EdwardsPoint] = {
        let encoding = try? fromHex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
        let eighth = encoding.flatMap(EdwardsPoint.init(octets:)) ?? .identity
        return (0..<8).map { multiple(Big(UInt32($0)), eighth) }
    }()

    private var points: [EdwardsPoint] {
        let mixed = multiple(Big(77), .base) + Self.torsion[3]
        return [.base, -.base, multiple(Big(octets: octetsOf("point")), .base), mixed] + Self.torsion
    }

    func testSumsAreThoseOfTheCurvesLaw() {
        for one in points {
            for other in points {
                XCTAssertEqual(hex((one + other).octets), hex(affineSum(one, other).octets))
                assertIsOnCurve(one + other)
            }
            XCTAssertEqual(hex(one.doubled.point.octets), hex(affineSum(one, one).octets))
            assertIsOnCurve(one.doubled.point)
            XCTAssertEqual((one + -one).octets, EdwardsPoint.identity.octets)
        }
    }

    func testMultiplesAreThoseOfDoublingAndAdding() throws {
        let numbers = [Big(0), Big(1), Big(2), Big(8), .order - Big(1), .power(252), Big(octets: octetsOf("k")) % .order]
        let scalars = try numbers.map { try known(Scalar25519(octets: $0.octets()[...]), "scalar") }
        let bases = points.map { Multiples($0) } + [.ofBase]
        for (k, scalar) in zip(numbers, scalars) {
            for (point, multiples) in zip(points + [.base], bases) {
                let expected = multiple(k, point)
                let negative = sumOfMultiples(scalars[6], .ofBase, scalar, Multiples(-point))
                XCTAssertEqual(hex(sumOfMultiples(scalar, multiples, scalars[0], .ofBase).octets), hex(expected.octets))
                XCTAssertEqual(hex((negative + expected).octets), hex(multiple(numbers[6], .base).octets))
            }
        }
        XCTAssertEqual(multiple(.order, .base).octets, EdwardsPoint.identity.octets)
    }

    func testPointsHaveOneEncoding() {
        for point in points {
            XCTAssertEqual(EdwardsPoint(octets: point.octets)?.octets, point.octets)
            if let read = EdwardsPoint(octets: point.octets) { assertIsOnCurve(read) }
        }
        // The identity and the point (0, -1) with the sign of x, and numbers not below the prime.
        let identity = EdwardsPoint.identity.octets
        let opposite = (Big.prime - Big(1)).octets()
        for octets in [identity, opposite] {
            XCTAssertNotNil(EdwardsPoint(octets: octets))
            XCTAssertNil(EdwardsPoint(octets: octets.dropLast() + [octets[31] | 0x80]))
        }
        for above in 0..<19 {
            let octets = (Big.prime + Big(UInt32(above))).octets()
            XCTAssertNil(EdwardsPoint(octets: octets))
            XCTAssertNil(EdwardsPoint(octets: octets.dropLast() + [octets[31] | 0x80]))
        }
        for count in [0, 31, 33] { XCTAssertNil(EdwardsPoint(octets: [UInt8](repeating: 1, count: count))) }
    }

    func testHalfOfAllOctetsAreAPointAndComeBack() {
        let read = (0..<200).compactMap { EdwardsPoint(octets: octetsOf("encoding \($0)")) }
        XCTAssertTrue((70..<130).contains(read.count), "\(read.count)")
        read.forEach(assertIsOnCurve)
    }

    func testTheEightPointsOfSmallOrder() {
        XCTAssertEqual(Set(Self.torsion.map { hex($0.octets) }).count, 8)
        for point in Self.torsion {
            XCTAssertTrue(point.isSmallOrder)
            XCTAssertFalse((point + .base).isSmallOrder)
        }
    }

    /// All eight stand for the identity of ristretto255, and a point plus four of them for one element.
    func testAnElementIsTheSameForEachOfItsPoints() {
        let point = multiple(Big(octets: octetsOf("element")), .base)
        for at in stride(from: 0, to: 8, by: 2) {
            XCTAssertEqual(
                RistrettoElement(point: point + Self.torsion[at]).octets, RistrettoElement(point: point).octets)
        }
        XCTAssertNil(RistrettoElement(octets: [1] + [UInt8](repeating: 0, count: 31)))
        let read = (0..<200).compactMap { number -> Bool? in
            let octets = octetsOf("element \(number)")
            return RistrettoElement(octets: octets).map { $0.octets == octets }
        }
        XCTAssertFalse(read.contains(false))
    }

    private func assertIsOnCurve(_ point: EdwardsPoint) {
        let (x2, y2, z2) = (point.x.squared, point.y.squared, point.z.squared)
        XCTAssertEqual((y2 - x2) * z2, z2.squared + EdwardsPoint.d * x2 * y2)
        XCTAssertEqual(point.x * point.y, point.z * point.t)
        XCTAssertFalse(point.z.isZero)
    }

    /// The addition of RFC 7748's twisted curve in x and y alone.
    private func affineSum(_ one: EdwardsPoint, _ other: EdwardsPoint) -> EdwardsPoint {
        let (x1, y1) = (one.x * one.z.inverse, one.y * one.z.inverse)
        let (x2, y2) = (other.x * other.z.inverse, other.y * other.z.inverse)
        let all = EdwardsPoint.d * x1 * x2 * y1 * y2
        let x = (x1 * y2 + x2 * y1) * (.one + all).inverse
        let y = (y1 * y2 + x1 * x2) * (.one - all).inverse
        return EdwardsPoint(x: x, y: y, z: .one, t: x * y)
    }
}

/// The point k times, by doubling and adding.
func multiple(_ k: Big, _ point: EdwardsPoint) -> EdwardsPoint {
    (0..<k.bitCount).reversed().reduce(EdwardsPoint.identity) { sum, at in
        k.bit(at) ? sum + sum + point : sum + sum
    }
}
