import CallsignCrypto
import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

final class DeviceKeysTests: XCTestCase {
    private let keys = SoftwareDeviceKeys.generate()

    private func point(of keys: any DeviceKeys) throws -> [UInt8] { try decodeBase64(keys.publicKey).suffix(pointOctets) }

    func testTwoDevicesAgreeOnASecretAndOnNoneWithAPointOffTheCurve() async throws {
        let other = SoftwareDeviceKeys.generate()
        XCTAssertEqual(try decodeBase64(keys.publicKey).count, 91)
        let agreed = try await [keys.agree(point(of: other)), other.agree(point(of: keys))]
        XCTAssertEqual(agreed[0], agreed[1])
        let off = try point(of: other).changed(at: 64)
        for point in [off, [UInt8](repeating: 0, count: 65), [], off.dropLast()] {
            let refused = await isRefused { _ = try await keys.agree(point) }
            XCTAssertTrue(refused)
        }
    }

    func testSignaturesAreRAndSAndVerify() async throws {
        let message = Array("message".utf8)
        let signer = try decodeBase64(keys.signingKey)
        XCTAssertTrue(isSigningKey(signer))
        var signed: Set<[UInt8]> = []
        for _ in 0..<200 {
            let signature = try await keys.sign(message)
            XCTAssertEqual(signature.count, 64)
            XCTAssertTrue(platform.p256Verify(point: signer, message, signature: signature))
            signed.insert(signature)
        }
        XCTAssertEqual(signed.count, 200)
        let another = try await keys.sign(Array("another".utf8))
        XCTAssertFalse(platform.p256Verify(point: signer, message, signature: another))
    }

    func testKeysComeBackFromWhatWasExportedAndFromNothingElse() async throws {
        let exported = keys.export()
        let again = try SoftwareDeviceKeys.import(exported)
        XCTAssertEqual([again.publicKey, again.signingKey], [keys.publicKey, keys.signingKey])
        let message = Array("message".utf8)
        let signature = try await again.sign(message)
        XCTAssertTrue(platform.p256Verify(point: try decodeBase64(keys.signingKey), message, signature: signature))
        let parts = exported.split(separator: " ").map(String.init)
        let wrong = [
            "", "?", "AAAA AAAA AAAA AAAA", "\(exported) ", " \(exported)",
            parts[..<3].joined(separator: " "),
            [parts[0], parts[1], parts[3], parts[2]].joined(separator: " "),
            [parts[1], parts[1], parts[2], parts[3]].joined(separator: " "),
        ]
        for text in wrong {
            let code = await codeOf { _ = try SoftwareDeviceKeys.import(text) }
            XCTAssertEqual(code, "STORAGE_CORRUPT", text)
        }
    }
}
