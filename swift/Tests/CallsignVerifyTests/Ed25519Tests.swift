import TestSupport
import XCTest

@testable import CallsignVerify

final class Ed25519Tests: XCTestCase {
    /// RFC 8032, 7.1, tests 1 to 3.
    private let published = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                + "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
        (
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                + "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ]

    func testSignaturesOfTheRFCHoldAndWithAnyOctetChangedDoNot() throws {
        for (key, message, signature) in published {
            let parts = try [fromHex(key), fromHex(message), fromHex(signature)]
            XCTAssertTrue(holds(parts))
            for part in parts.indices {
                for at in parts[part].indices {
                    var changed = parts
                    changed[part][at] ^= 1 << (at % 8)
                    XCTAssertFalse(holds(changed), "octet \(at) of part \(part)")
                }
            }
        }
    }

    func testOtherLengthsAreRefused() throws {
        let (key, message, signature) = try (fromHex(published[1].0), fromHex(published[1].1), fromHex(published[1].2))
        for odd in [[], Array(key.dropLast()), key + [0]] { XCTAssertFalse(holds([odd, message, signature])) }
        for odd in [[], Array(signature.dropLast()), signature + [0]] { XCTAssertFalse(holds([key, message, odd])) }
    }

    func testAScalarNotBelowTheOrderIsRefused() throws {
        let (key, message, signature) = try (fromHex(published[1].0), fromHex(published[1].1), fromHex(published[1].2))
        var s = Big(octets: Array(signature[32...]))
        // s + 15 times the order is still below 2^256.
        for _ in 0..<15 {
            s = s + .order
            XCTAssertFalse(holds([key, message, signature[..<32] + s.octets()]))
        }
    }

    /// With the cofactor, all of them would hold.
    func testPointsOutsideOfThePrimeGroup() {
        for number in 0..<8 {
            let (inKey, inR) = (PointTests.torsion[number], PointTests.torsion[number % 2 == 0 ? 0 : 1])
            let message = Array("message \(number)".utf8)
            let (secret, nonce) = (Big(UInt32(number + 1)) * Big(0x1234567), Big(UInt32(number + 1)) * Big(0x89abcd))
            let key = (multiple(secret, .base) + inKey).octets
            let r = (multiple(nonce, .base) + inR).octets
            let k = Big(octets: sha512(r, key, message)) % .order
            let s = (nonce + k * secret) % .order
            // s B - k A is R for honest points; else their parts of small order have to cancel out.
            let rest = inR + multiple(k, inKey)
            XCTAssertEqual(holds([key, message, r + s.octets()]), rest.octets == EdwardsPoint.identity.octets, "\(number)")
        }
        XCTAssertTrue(PointTests.torsion[0].octets == EdwardsPoint.identity.octets)
    }

    /// For such a key R = B, S = 1 satisfies the equation of many messages.
    func testKeysOfSmallOrderAreRefused() {
        let forged = EdwardsPoint.base.octets + Big(1).octets()
        for point in PointTests.torsion {
            for number in 0..<16 { XCTAssertFalse(holds([point.octets, Array("message \(number)".utf8), forged])) }
        }
        // Without that rule, the identity as a key takes every message.
        let sum = sumOfMultiples(one, .ofBase, one, Multiples(.identity))
        XCTAssertEqual(sum.octets, EdwardsPoint.base.octets)
    }

    func testAKeyWithASecondSpellingIsRefused() {
        // y = 1 + p and x = 0 with a sign are spellings of the identity; others have y below 19.
        for above in 0..<19 {
            for sign in [0, 0x80] as [UInt8] {
                var key = (Big.prime + Big(UInt32(above))).octets()
                key[31] |= sign
                XCTAssertFalse(holds([key, [], EdwardsPoint.base.octets + Big(1).octets()]))
            }
        }
    }

    private var one: Scalar25519 { Scalar25519(reducing: Big(1).octets(64)) }

    private func holds(_ parts: [[UInt8]]) -> Bool {
        ed25519Verify(publicKey: parts[0], message: parts[1], signature: parts[2])
    }
}
