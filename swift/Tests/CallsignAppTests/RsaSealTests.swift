import CallsignCrypto
import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Call keys for RSA-2048 devices: sealed here, and opened with the platform's own RSA.
final class RsaSealTests: XCTestCase {
    private var vector = JSONValue.null
    private var privateKey: [UInt8] = []
    private var spki: [UInt8] = []
    private let keys = SoftwareDeviceKeys.generate()

    override func setUpWithError() throws {
        vector = try readVectors("call-key-rsa")
        privateKey = try vector.base64("private_key_pkcs8_base64")
        spki = try vector.base64("public_key_base64")
    }

    private func ann() throws -> OwnKeyHolder { try OwnKeyHolder(userId: 1, deviceId: 11, keys: keys) }

    private func sealed(for publicKey: [UInt8], _ content: [UInt8] = makeCallKey()) async throws -> [UInt8] {
        let to = try KeyHolder(userId: 2, deviceId: 22, publicKey: encodeBase64(publicKey))
        return try decodeBase64(await sealCallKey(content, from: ann(), to: to, binding: binding))
    }

    private func opened(
        _ octets: [UInt8], publicKey: [UInt8]? = nil, info: [UInt8]? = nil, signingKey: String? = nil
    ) throws -> [UInt8] {
        try openForRSA(
            octets, privateKey: privateKey, publicKey: publicKey ?? spki, info: info ?? self.info(epoch: 1),
            signingKey: decodeBase64(signingKey ?? keys.signingKey))
    }

    /// The `info` of docs/check/crypto.md, from 1_11 to 2_22.
    private func info(epoch: UInt64) -> [UInt8] {
        let numbers = bigEndianOctets(6_117_204_471_893_025, count: 8) + bigEndianOctets(epoch, count: 4)
        let names = ([1, 11, 2, 22] as [UInt64]).flatMap { bigEndianOctets($0, count: 8) }
        return Array("callsign call key v2\n".utf8) + numbers + names + [UInt8](repeating: 0, count: 16)
    }

    func testAnRSADeviceOpensWhatIsSealedForItInEitherEncodingOfItsKey() async throws {
        let content = [UInt8](repeating: 7, count: 180)
        for publicKey in [spki, Array(spki.dropFirst(24))] {
            let sealed = try await sealed(for: publicKey, content)
            XCTAssertEqual(sealed.count, 1 + 256 + 180 + 16 + 64)
            XCTAssertEqual(try opened(sealed, publicKey: publicKey), content)
        }
    }

    func testItOpensForNoOtherUseAndWithNoBitChanged() async throws {
        let sealed = try await sealed(for: spki)
        _ = try opened(sealed)
        XCTAssertThrowsError(try opened(sealed, info: info(epoch: 2)))
        XCTAssertThrowsError(try opened(sealed, signingKey: SoftwareDeviceKeys.generate().signingKey))
        for at in [0, 1, 256, 257, sealed.count - 81, sealed.count - 65] {
            XCTAssertThrowsError(try opened(sealed.changed(at: at)), "octet \(at)")
        }
    }

    func testSignaturesHaveTheLowerS() async throws {
        for _ in 0..<16 {
            let signature = try await sealed(for: spki).suffix(64)
            XCTAssertEqual(try withLowS(Array(signature)), Array(signature))
        }
    }

    func testADeviceOfP256RefusesTheFormAndAnRSADeviceSealsNothing() async throws {
        let (ann, spki) = (try ann(), spki)
        let bob = try OwnKeyHolder(userId: 2, deviceId: 22, keys: SoftwareDeviceKeys.generate())
        let sealed = try await encodeBase64(sealed(for: spki))
        let opening = await codeOf { _ = try await openCallKey(sealed, from: ann.holder, to: bob, binding: binding) }
        XCTAssertEqual(opening, "CALL_KEY_INVALID")
        let rsaKeys = ChangedKeys(keys: keys, publicKey: encodeBase64(spki))
        let own = try OwnKeyHolder(userId: 3, deviceId: 33, keys: rsaKeys)
        for to in [ann.holder, try KeyHolder(userId: 2, deviceId: 22, publicKey: encodeBase64(spki))] {
            let code = await codeOf { _ = try await sealCallKey(makeCallKey(), from: own, to: to, binding: binding) }
            XCTAssertEqual(code, "KEY_UNSUPPORTED")
        }
    }

    func testAKeyThatIsNearlyOneOfRSA2048IsNone() {
        XCTAssertEqual(rsaSPKI(of: spki), spki)
        var exponent3 = spki
        exponent3[spki.count - 1] = 3
        let nearly = [
            exponent3, Array(spki.dropFirst()), Array(spki.dropLast()), [UInt8](repeating: 0, count: 270), [],
        ]
        for octets in nearly { XCTAssertNil(rsaSPKI(of: octets)) }
    }

    func testWhatTheTypeScriptHasSealedOpens() throws {
        XCTAssertEqual(hex(info(epoch: 1)), try vector.text("info_hex"))
        let opened = try opened(vector.base64("sealed_base64"), signingKey: vector.text("signing_key_base64"))
        XCTAssertEqual(hex(opened), try vector.text("opened_hex"))
    }

    private func openForRSA(
        _ octets: [UInt8], privateKey: [UInt8], publicKey: [UInt8], info: [UInt8], signingKey: [UInt8]
    ) throws -> [UInt8] {
        let sealed = Array(octets.dropLast(64))
        let message = Array("callsign call key rsa signature v2\n".utf8) + info + sealed
        guard octets[0] == 3, platform.p256Verify(point: signingKey, message, signature: octets.suffix(64))
        else { throw CryptoError.notAuthentic }
        let secret = try rsaDecrypt(pkcs8: privateKey, Array(sealed[1..<257]))
        let use = Array("callsign call key rsa v2\n".utf8) + info + sha256(publicKey) + signingKey
        // HKDF (RFC 5869) without salt, two blocks.
        let pseudorandom = platform.hmacSHA256(key: [UInt8](repeating: 0, count: 32), secret)
        let first = platform.hmacSHA256(key: pseudorandom, use + [1])
        let second = platform.hmacSHA256(key: pseudorandom, first + use + [2])
        return try platform.openGCM(key: first, nonce: Array(second[..<12]), Array(sealed[257...]), authenticating: [])
    }
}
