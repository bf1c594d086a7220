import CallsignCrypto
import XCTest

/// Both halves of the seam do the same, where both can run.
final class PrimitivesTests: XCTestCase {
    func testHashes() {
        for platform in platforms {
            let abc = Array("abc".utf8)
            XCTAssertEqual(hex(platform.sha256(abc)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
            XCTAssertTrue(hex(platform.sha512(abc)).hasPrefix("ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"))
            // RFC 4231, case 2.
            let code = platform.hmacSHA256(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
            XCTAssertEqual(hex(code), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
            XCTAssertEqual(platform.hmacSHA512(key: [1], [2]), platforms[0].hmacSHA512(key: [1], [2]))
        }
    }

    func testWhatOneSealsTheOtherOpens() throws {
        for (one, other) in pairs {
            for size in [16, 32] {
                let key = randomOctets(size)
                let nonce = randomOctets(12)
                for text in [[], randomOctets(1_000)] {
                    var sealed = try one.sealGCM(key: key, nonce: nonce, text, authenticating: [1, 2])
                    XCTAssertEqual(sealed.count, text.count + 16)
                    XCTAssertEqual(try other.openGCM(key: key, nonce: nonce, sealed, authenticating: [1, 2]), text)
                    XCTAssertThrowsError(try other.openGCM(key: key, nonce: nonce, sealed, authenticating: [1]))
                    sealed[0] ^= 1
                    XCTAssertThrowsError(try other.openGCM(key: key, nonce: nonce, sealed, authenticating: [1, 2])) { error in
                        XCTAssertEqual(error as? CryptoError, .notAuthentic)
                    }
                }
            }
        }
    }

    func testBothAgreeAndSign() throws {
        for (one, other) in pairs {
            let ann = one.newP256Key()
            let bob = other.newP256Key()
            let annPoint = try one.p256Point(ofKey: ann)
            let bobPoint = try other.p256Point(ofKey: bob)
            XCTAssertTrue(one.isP256Point(bobPoint))
            XCTAssertEqual(try one.p256Agree(key: ann, point: bobPoint), try other.p256Agree(key: bob, point: annPoint))
            let message = Array("a list".utf8)
            let signature = try one.p256Sign(key: ann, message)
            XCTAssertTrue(other.p256Verify(point: annPoint, message, signature: signature))
            XCTAssertFalse(other.p256Verify(point: bobPoint, message, signature: signature))
            XCTAssertFalse(other.p256Verify(point: annPoint, message + [0], signature: signature))
        }
    }

    func testOddKeysAreRefused() throws {
        for platform in platforms {
            let key = platform.newP256Key()
            var point = try platform.p256Point(ofKey: key)
            XCTAssertFalse(platform.isP256Point([0]))
            XCTAssertFalse(platform.isP256Point([]))
            point[64] ^= 1
            XCTAssertFalse(platform.isP256Point(point))
            XCTAssertThrowsError(try platform.p256Agree(key: key, point: point))
            XCTAssertThrowsError(try platform.p256Point(ofKey: [UInt8](repeating: 0, count: 32)))
            XCTAssertThrowsError(try platform.p256Point(ofKey: [UInt8](repeating: 255, count: 32)))
            XCTAssertFalse(platform.p256Verify(point: point, [], signature: [UInt8](repeating: 0, count: 64)))
        }
    }
}

#if SWIFT_CRYPTO && canImport(COpenSSL)
private let platforms: [any Primitives] = [OpenSSLPrimitives(), CryptoKitPrimitives()]
#else
private let platforms: [any Primitives] = [platform]
#endif
private let pairs = platforms.flatMap { one in platforms.map { (one, $0) } }

private func hex(_ octets: [UInt8]) -> String {
    octets.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
