import CallsignCrypto
import TestSupport
import XCTest

@testable import CallsignVerify

final class P256Tests: XCTestCase {
    private let key = platform.newP256Key()
    private let message = Array("a list".utf8)

    private func signed() throws -> (point: [UInt8], signature: [UInt8]) {
        try (platform.p256Point(ofKey: key), platform.p256Sign(key: key, message))
    }

    func testWithAnyOctetChangedASignatureDoesNotHold() throws {
        let (point, signature) = try signed()
        let parts = [point, message, signature]
        XCTAssertTrue(holds(parts))
        for part in parts.indices {
            for at in parts[part].indices {
                var changed = parts
                changed[part][at] ^= 1 << (at % 8)
                XCTAssertFalse(holds(changed), "octet \(at) of part \(part)")
            }
        }
    }

    func testOddInputsAreRefused() throws {
        let (point, signature) = try signed()
        let zeros = [UInt8](repeating: 0, count: 64)
        for odd in [[], [4], Array(point.dropLast()), point + [0], [0] + zeros, [4] + zeros] {
            XCTAssertFalse(isSigningKey(odd))
            XCTAssertFalse(holds([odd, message, signature]))
        }
        // The compressed and the hybrid spelling of the same point, and that of infinity.
        let isOdd = point[64] & 1
        let spellings: [[UInt8]] = [[2 + isOdd] + Array(point[1..<33]), [6 + isOdd] + Array(point[1...]), [0]]
        for odd in spellings {
            XCTAssertFalse(isSigningKey(odd))
            XCTAssertFalse(holds([odd, message, signature]))
        }
        for odd in [[], Array(signature.dropLast()), signature + [0]] { XCTAssertFalse(holds([point, message, odd])) }
        let bounds = [Big(0), order, order + Big(1), prime, Big.power(256) - Big(1)].map(bigEndian)
        for bound in bounds {
            XCTAssertFalse(holds([point, message, bound + signature[32...]]))
            XCTAssertFalse(holds([point, message, signature[..<32] + bound]))
        }
    }

    /// Some libraries take x + p for x.
    func testACoordinateNotBelowThePrimeIsRefused() throws {
        let y = try fromHex("66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4")
        XCTAssertTrue(isSigningKey([4] + bigEndian(Big(0)) + y))
        XCTAssertFalse(isSigningKey([4] + bigEndian(prime) + y))
        XCTAssertFalse(isSigningKey([4] + bigEndian(Big(1)) + y))
        let other = try fromHex("459243b9aa581806fe913bce99817ade11ca503c64d9a3c533415c083248fbcc")
        XCTAssertTrue(isSigningKey([4] + bigEndian(Big(5)) + other))
        XCTAssertFalse(isSigningKey([4] + bigEndian(Big(5) + prime) + other))
    }

    func testOfTwoSignaturesTheLowerOneIsMade() throws {
        let (point, signature) = try signed()
        let low = try withLowS(signature)
        let s = number(low[32...])
        XCTAssertTrue(s + s < order)
        XCTAssertEqual(low[..<32], signature[..<32])
        let high = low[..<32] + bigEndian(order - s)
        XCTAssertTrue(hasHighS(Array(high)))
        XCTAssertFalse(hasHighS(low))
        XCTAssertEqual(try withLowS(Array(high)), low)
        XCTAssertEqual(try withLowS(low), low)
        // Both hold.
        for either in [low, Array(high)] { XCTAssertTrue(holds([point, message, either])) }
    }

    func testTheHalfOfTheOrderIsTheBound() throws {
        let r = [UInt8](repeating: 7, count: 32)
        // The order is odd: twice this number is the order less 1.
        let half = number(try fromHex("7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8")[...])
        XCTAssertEqual(half + half + Big(1), order)
        let cases = [
            (half, half), (half + Big(1), half), (half + Big(2), half - Big(1)), (order - Big(1), Big(1)), (Big(0), Big(0)),
            // No s at all, and left as it is.
            (order, order), (order + Big(1), order + Big(1)), (.power(256) - Big(1), .power(256) - Big(1)),
        ]
        for (s, low) in cases { XCTAssertEqual(try withLowS(r + bigEndian(s)), r + bigEndian(low)) }
        for number in 0..<50 {
            let s = Big(octets: octetsOf("s \(number)")) % order
            XCTAssertEqual(try withLowS(r + bigEndian(s)), r + bigEndian(s > half ? order - s : s))
        }
        for count in [0, 63, 65] {
            XCTAssertEqual(logErrorCode { _ = try withLowS([UInt8](repeating: 1, count: count)) }, .malformed)
        }
    }

    private func holds(_ parts: [[UInt8]]) -> Bool {
        p256Verify(publicKey: parts[0], message: parts[1], signature: parts[2])
    }
}

private func number(_ octets: ArraySlice<UInt8>) -> Big { Big(octets: octets.reversed()) }
private func bigEndian(_ number: Big) -> [UInt8] { number.octets().reversed() }

private let order = number([
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
])
private let prime = Big.power(256) - .power(224) + .power(192) + .power(96) - Big(1)
