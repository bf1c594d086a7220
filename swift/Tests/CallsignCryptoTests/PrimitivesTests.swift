import CallsignCrypto
import TestSupport
import XCTest

#if canImport(COpenSSL)
import COpenSSL
#endif

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

    /// McGrew and Viega, test case 4; RFC 6979, A.2.5; RFC 5903, 8.1.
    func testPublishedVectors() throws {
        let key = try fromHex("feffe9928665731c6d6a8f9467308308")
        let nonce = try fromHex("cafebabefacedbaddecaf888")
        let text = try fromHex(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
        let sealed =
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
            + "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
            + "5bc94fbc3221a5db94fae95ae7121a47"
        let authenticated = try fromHex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
        let point = try fromHex(
            "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
                + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")
        let signature = try fromHex(
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
        let secretOfPoint = try fromHex("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721")
        let initiator = try fromHex("c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433")
        let responder = try fromHex("c6ef9c5d78ae012a011164acb397ce2088685d8f06bf9be0b283ab46476bee53")
        for platform in platforms {
            XCTAssertEqual(hex(try platform.sealGCM(key: key, nonce: nonce, text, authenticating: authenticated)), sealed)
            XCTAssertEqual(try platform.p256Point(ofKey: secretOfPoint), point)
            XCTAssertTrue(platform.p256Verify(point: point, Array("sample".utf8), signature: signature))
            let agreed = try platform.p256Agree(key: initiator, point: platform.p256Point(ofKey: responder))
            XCTAssertEqual(hex(agreed), "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de")
        }
    }

    /// RFC 5869, A.1 and A.3; the other hash against its definition.
    func testKeysAreDerived() throws {
        let secret = [UInt8](repeating: 0x0b, count: 22)
        let (salt, info) = try (fromHex("000102030405060708090a0b0c"), fromHex("f0f1f2f3f4f5f6f7f8f9"))
        XCTAssertEqual(
            hex(HKDF.derive(.sha256, salt: salt, secret: secret, info: info, length: 42)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
        XCTAssertEqual(
            hex(HKDF.derive(.sha256, secret: secret, info: [], length: 42)),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")
        let pseudorandom = platform.hmacSHA512(key: salt, secret)
        let first = platform.hmacSHA512(key: pseudorandom, info + [1])
        let second = platform.hmacSHA512(key: pseudorandom, first + info + [2])
        let derived = HKDF.derive(.sha512, salt: salt, secret: secret, info: info, length: 100)
        XCTAssertEqual(derived, Array((first + second).prefix(100)))
        XCTAssertEqual(HKDF.expand(.sha256, pseudorandom: secret, info: [], length: 255 * 32).count, 255 * 32)
        XCTAssertEqual(HKDF.expand(.sha256, pseudorandom: secret, info: [], length: 0), [])
    }

    func testNothingAsAnInput() throws {
        for platform in platforms {
            XCTAssertEqual(hex(platform.sha256([])), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
            // The key of no octets is one of zeros.
            XCTAssertEqual(platform.hmacSHA256(key: [], []), platform.hmacSHA256(key: [UInt8](repeating: 0, count: 64), []))
            XCTAssertEqual(platform.hmacSHA512(key: [], []), platform.hmacSHA512(key: [0], []))
            // McGrew and Viega, test case 1.
            let (zeroKey, zeroNonce) = ([UInt8](repeating: 0, count: 16), [UInt8](repeating: 0, count: 12))
            let sealed = try platform.sealGCM(key: zeroKey, nonce: zeroNonce, [], authenticating: [])
            XCTAssertEqual(hex(sealed), "58e2fccefa7e3061367f1d57a4e7455a")
            let key = platform.newP256Key()
            let signature = try platform.p256Sign(key: key, [])
            XCTAssertTrue(platform.p256Verify(point: try platform.p256Point(ofKey: key), [], signature: signature))
        }
    }

    func testOtherSizesAreRefused() throws {
        for platform in platforms {
            let (key, nonce) = (randomOctets(16), randomOctets(12))
            for size in [0, 15, 17, 24, 31, 33] {
                XCTAssertThrowsError(try platform.sealGCM(key: randomOctets(size), nonce: nonce, [], authenticating: []))
                XCTAssertThrowsError(try platform.openGCM(key: randomOctets(size), nonce: nonce, key, authenticating: []))
            }
            for size in [0, 8, 11, 13, 16] {
                XCTAssertThrowsError(try platform.sealGCM(key: key, nonce: randomOctets(size), [], authenticating: []))
                XCTAssertThrowsError(try platform.openGCM(key: key, nonce: randomOctets(size), key, authenticating: []))
            }
            let sealed = try platform.sealGCM(key: key, nonce: nonce, [1, 2], authenticating: [])
            for count in sealed.indices {
                XCTAssertThrowsError(try platform.openGCM(key: key, nonce: nonce, Array(sealed[..<count]), authenticating: [])) {
                    XCTAssertEqual($0 as? CryptoError, .notAuthentic)
                }
            }
            let point = try platform.p256Point(ofKey: platform.newP256Key())
            for size in [0, 31, 33, 48] {
                XCTAssertThrowsError(try platform.p256Point(ofKey: randomOctets(size)))
                XCTAssertThrowsError(try platform.p256Sign(key: randomOctets(size), []))
                XCTAssertThrowsError(try platform.p256Agree(key: randomOctets(size), point: point))
            }
        }
    }

    func testPrivateKeysAreBelowTheOrder() throws {
        let order = try fromHex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
        for platform in platforms {
            let base = try platform.p256Point(ofKey: [UInt8](repeating: 0, count: 31) + [1])
            let opposite = try platform.p256Point(ofKey: order.dropLast() + [0x50])
            XCTAssertEqual(base[..<33], opposite[..<33])
            XCTAssertNotEqual(base, opposite)
            for key in [order, order.dropLast() + [0x52], [UInt8](repeating: 0, count: 32)] {
                XCTAssertThrowsError(try platform.p256Point(ofKey: key))
                XCTAssertThrowsError(try platform.p256Agree(key: key, point: base))
                XCTAssertThrowsError(try platform.p256Sign(key: key, []))
            }
        }
    }

    func testOnlyTheUncompressedSpellingIsAPoint() throws {
        for platform in platforms {
            let key = platform.newP256Key()
            let point = try platform.p256Point(ofKey: key)
            let isOdd = point[64] & 1
            let zeros = [UInt8](repeating: 0, count: 64)
            let spellings: [[UInt8]] = [
                [2 + isOdd] + Array(point[1..<33]), [6 + isOdd] + Array(point[1...]), [5] + Array(point[1...]), [0], [4] + zeros,
                [0] + zeros, point + [0], Array(point.dropLast()), Array(point.dropFirst()),
            ]
            for odd in spellings {
                XCTAssertFalse(platform.isP256Point(odd))
                XCTAssertThrowsError(try platform.p256Agree(key: key, point: odd))
                XCTAssertFalse(platform.p256Verify(point: odd, [], signature: [UInt8](repeating: 1, count: 64)))
            }
        }
    }

    func testScalarsOfSignaturesAreInOrder() throws {
        let order = try fromHex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
        for platform in platforms {
            let key = platform.newP256Key()
            let point = try platform.p256Point(ofKey: key)
            let signature = try platform.p256Sign(key: key, [7])
            for odd in [[UInt8](repeating: 0, count: 32), [UInt8](repeating: 255, count: 32), order] {
                XCTAssertFalse(platform.p256Verify(point: point, [7], signature: odd + signature[32...]))
                XCTAssertFalse(platform.p256Verify(point: point, [7], signature: signature[..<32] + odd))
                XCTAssertFalse(platform.p256Verify(point: point, [7], signature: odd + odd))
            }
            for count in [0, 63, 65] {
                XCTAssertFalse(platform.p256Verify(point: point, [7], signature: [UInt8](repeating: 1, count: count)))
            }
        }
    }

    #if canImport(COpenSSL)
    func testWhatIsEncryptedForRSAItsOwnerDecrypts() throws {
        let vector = try readVectors("call-key-rsa")
        let spki = try vector.base64("public_key_base64")
        let privateKey = try vector.base64("private_key_pkcs8_base64")
        for text in [[], randomOctets(32), randomOctets(190)] {
            let sealed = try platform.rsaEncrypt(spki: spki, text)
            XCTAssertEqual(sealed.count, 256)
            XCTAssertEqual(rsaDecrypted(sealed, privateKey), text)
            XCTAssertNotEqual(try platform.rsaEncrypt(spki: spki, text), sealed)
        }
        // OAEP with SHA-256 leaves 190 octets.
        XCTAssertThrowsError(try platform.rsaEncrypt(spki: spki, randomOctets(191)))
        XCTAssertEqual(ERR_peek_error(), 0)
    }

    func testKeysThatAreNotOfRSA2048AreRefused() throws {
        let spki = try readVectors("call-key-rsa").base64("public_key_base64")
        var (even, shorter, ofPSS) = (spki, spki, spki)
        even[spki.count - 6] &= 0xfe
        shorter[33] = 0
        // RSASSA-PSS in the place of rsaEncryption.
        ofPSS[16] = 0x0a
        // A shorter key, with the exponent 3, and two octets that no part of it holds.
        var followed = Array(spki.dropLast(5)) + [0x02, 0x01, 0x03, 0, 0]
        for at in [3, 22, 27] { followed[at] -= 2 }
        var otherHeader = spki
        otherHeader[17] = 0x04
        let point = try platform.p256Point(ofKey: platform.newP256Key())
        let ofP256 = try fromHex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + point
        let odd = [[], [0x30], Array(spki.dropLast()), spki + [0], Array(spki.suffix(270)), even, shorter, ofPSS, ofP256, followed, otherHeader]
        for octets in odd + [[UInt8](repeating: 0, count: 294), [UInt8](repeating: 0x30, count: 294)] {
            XCTAssertThrowsError(try platform.rsaEncrypt(spki: octets, [1]), hex(octets)) {
                XCTAssertEqual($0 as? CryptoError, .keyInvalid)
            }
            // A later call that asks OpenSSL for its errors must not get these.
            XCTAssertEqual(ERR_peek_error(), 0)
        }
    }

    /// RSAES-OAEP with SHA-256 and MGF1 with SHA-256, as the device that holds the key opens it.
    private func rsaDecrypted(_ sealed: [UInt8], _ pkcs8: [UInt8]) -> [UInt8]? {
        pkcs8.withUnsafeBufferPointer { buffer in
            var at = buffer.baseAddress
            let key = d2i_AutoPrivateKey(nil, &at, buffer.count)
            defer { EVP_PKEY_free(key) }
            let context = EVP_PKEY_CTX_new(key, nil)
            defer { EVP_PKEY_CTX_free(context) }
            var text = [UInt8](repeating: 0, count: 256)
            var count = text.count
            guard EVP_PKEY_decrypt_init(context) == 1,
                EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_oaep_md(context, EVP_sha256()) == 1,
                EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256()) == 1,
                EVP_PKEY_decrypt(context, &text, &count, sealed, sealed.count) == 1
            else { return nil }
            return Array(text.prefix(count))
        }
    }
    #endif
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
