import CallsignCrypto
import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Those of a device whose agreement is another's.
struct ChangedKeys: DeviceKeys {
    let keys: any DeviceKeys
    var publicKey: String
    var isUntouchable = false

    var signingKey: String { keys.signingKey }

    func agree(_ point: [UInt8]) async throws -> [UInt8] {
        XCTAssertFalse(isUntouchable, "the key was used")
        return try await keys.agree(point)
    }

    func sign(_ message: [UInt8]) async throws -> [UInt8] { try await keys.sign(message) }
}

/// Sealed call keys, by the values of docs/check/crypto.md and the vectors.
final class CallKeysTests: XCTestCase {
    private func holder(_ userId: UInt64, _ deviceId: UInt64, _ row: String) throws -> OwnKeyHolder {
        let agreement = try KeyPair(scalar: documented(row))
        return try OwnKeyHolder(
            userId: userId, deviceId: deviceId, keys: SoftwareDeviceKeys(agreement: agreement, signing: KeyPair()))
    }

    private func annAndBob() throws -> (OwnKeyHolder, OwnKeyHolder) {
        (try holder(1, 11, "sender | `1_11`"), try holder(2, 22, "receiver | `2_22`"))
    }

    func testValuesOfThePageComeOut() async throws {
        let (ann, bob) = try annAndBob()
        let opened = try await openCallKey(documented("sealed"), from: ann.holder, to: bob, binding: binding)
        let content = try readCallKey(opened, origin: "log.example/kt").content
        XCTAssertEqual(hex(content.callKey), try documented("call key"))
        XCTAssertEqual("\(content.sealedAtMs)", try documented("time"))
        XCTAssertEqual(
            try fingerprintOf(content.callKey, setHash: content.setHash, binding: binding), try documented("digits"))
        // On the page they are registered as points.
        let registered = try [ann, bob].map {
            let point = try decodeBase64($0.holder.publicKeyOfTest).suffix(pointOctets)
            return try KeyHolder(
                userId: $0.holder.userId, deviceId: $0.holder.deviceId, publicKey: encodeBase64(Array(point)))
        }
        let set = try documented("set of both devices")
        XCTAssertEqual(try keyMembersOf(registered), set)
        XCTAssertEqual(try hashOfSet(set), content.setHash)
        XCTAssertEqual(hex(content.setHash), try documented("its hash"))
    }

    func testASealedKeyOpensAtItsReceiverWithItsCheckpoint() async throws {
        let (ann, bob) = try annAndBob()
        let content = try packCallKey(
            CallKeyContent(callKey: makeCallKey(), setHash: [UInt8](repeating: 0, count: 32), sealedAtMs: 0))
        let sealed = try await sealCallKey(content, from: ann, to: bob.holder, binding: binding)
        XCTAssertEqual(try decodeBase64(sealed).count, 154)
        let opened = try await openCallKey(sealed, from: ann.holder, to: bob, binding: binding)
        XCTAssertEqual(opened, content)
        let again = try await sealCallKey(content, from: ann, to: bob.holder, binding: binding)
        XCTAssertNotEqual(again, sealed)

        let vector = try readVectors("call-key-checkpoint")
        let ofVector = try await openCallKey(vector.text("sealed_base64"), from: ann.holder, to: bob, binding: binding)
        XCTAssertEqual(ofVector, try vector.hex("opened_hex"))
        let noted = try await sealCallKey(vector.hex("opened_hex"), from: ann, to: bob.holder, binding: binding)
        XCTAssertEqual(try decodeBase64(noted).count, 262)
        let origin = try known(vector.text("note").split(separator: "\n").first.map(String.init), "note")
        let read = try readCallKey(
            await openCallKey(noted, from: ann.holder, to: bob, binding: binding), origin: origin)
        XCTAssertEqual(read.content.callKey, try vector.hex("call_key_hex"))
        XCTAssertEqual(read.content.setHash, try vector.hex("set_hash_hex"))
        XCTAssertEqual(read.note, try vector.text("note"))
    }

    func testAKeyIsOpenedByTheDeviceItWasSealedForAsComingFromTheOneThatSealedIt() async throws {
        let (ann, bob) = try annAndBob()
        let eve = try OwnKeyHolder(userId: 3, deviceId: 33, keys: SoftwareDeviceKeys.generate())
        let sealed = try await sealCallKey(makeCallKey(), from: ann, to: bob.holder, binding: binding)
        let octets = try decodeBase64(sealed)
        func assertInvalid(
            _ what: String, _ text: String? = nil, from: KeyHolder? = nil, to: OwnKeyHolder? = nil, use: KeyBinding? = nil
        ) async {
            let code = await codeOf {
                _ = try await openCallKey(text ?? sealed, from: from ?? ann.holder, to: to ?? bob, binding: use ?? binding)
            }
            XCTAssertEqual(code, "CALL_KEY_INVALID", what)
        }
        func with(enc: [UInt8]) -> String { encodeBase64([octets[0]] + enc + octets.dropFirst(66)) }
        let callId = binding.callId
        let off = Array(octets[1..<66]).changed(at: 64)
        let nonce = [UInt8](repeating: 0, count: 15) + [1]
        await assertInvalid("for another call", use: KeyBinding(callId: "7", epoch: 1))
        await assertInvalid("for another epoch", use: KeyBinding(callId: callId, epoch: 2))
        await assertInvalid("for an ask", use: KeyBinding(callId: callId, epoch: 1, nonce: nonce))
        for id in ["", "0\(callId)", "+\(callId)", "\(callId)\u{301}", "18446744073709551616"] {
            await assertInvalid("for the call \(id)", use: KeyBinding(callId: id, epoch: 1))
        }
        await assertInvalid("for an epoch with the same four octets", use: KeyBinding(callId: callId, epoch: 1 << 32 + 1))
        await assertInvalid("from another device", from: eve.holder)
        await assertInvalid("for another device", to: eve)
        await assertInvalid("for another user", to: try OwnKeyHolder(userId: 3, deviceId: 22, keys: bob.keys))
        await assertInvalid("for another device's name", to: try OwnKeyHolder(userId: 2, deviceId: 3, keys: bob.keys))
        for (userId, deviceId) in [(2, 11), (1, 2)] as [(UInt64, UInt64)] {
            let from = try KeyHolder(userId: userId, deviceId: deviceId, publicKey: ann.keys.publicKey)
            await assertInvalid("from \(from.name)", from: from)
        }
        await assertInvalid("to its own sender", to: ann)
        await assertInvalid("of form 1", encodeBase64([1] + octets.dropFirst()))
        await assertInvalid("of form 1, which had no number", encodeBase64(Array(octets.dropFirst())))
        await assertInvalid("by a point off the curve", with(enc: off))
        await assertInvalid("by zeros for a point", with(enc: [UInt8](repeating: 0, count: 65)))
        await assertInvalid("by infinity for a point", with(enc: [0]))
        await assertInvalid(
            "from a sender off the curve", from: try KeyHolder(userId: 1, deviceId: 11, publicKey: encodeBase64(off)))
        await assertInvalid("an octet longer", encodeBase64(octets + [0]))
        for text in ["?", ""] { await assertInvalid("the text \(text)", text) }
        for changed in octets.oneBitChanged + octets.cut { await assertInvalid(hex(changed), encodeBase64(changed)) }
    }

    func testTheAnswerToAnAskOpensWithTheNonceOfTheAskAlone() async throws {
        let (ann, bob) = try annAndBob()
        let content = makeCallKey()
        func use(_ nonce: [UInt8]?) -> KeyBinding { KeyBinding(callId: binding.callId, epoch: 1, nonce: nonce) }
        let asked = use(Array(0..<16))
        let sealed = try await sealCallKey(content, from: ann, to: bob.holder, binding: asked)
        let opened = try await openCallKey(sealed, from: ann.holder, to: bob, binding: asked)
        XCTAssertEqual(opened, content)
        for other in [use([UInt8](repeating: 1, count: 16)), use(nil)] {
            let code = await codeOf { _ = try await openCallKey(sealed, from: ann.holder, to: bob, binding: other) }
            XCTAssertEqual(code, "CALL_KEY_INVALID")
        }
    }

    func testDigitsAreOfKeySetCallAndEpoch() throws {
        func digits(key: UInt8 = 0, hash: UInt8 = 0, callId: String = "1", epoch: Int = 1) throws -> String {
            try fingerprintOf(
                [UInt8](repeating: key, count: 32), setHash: [UInt8](repeating: hash, count: 32),
                binding: KeyBinding(callId: callId, epoch: epoch))
        }
        let all = try [digits(), digits(key: 1), digits(hash: 1), digits(callId: "2"), digits(epoch: 2)]
        XCTAssertEqual(Set(all).count, 5)
        for each in all {
            let groups = each.split(separator: " ")
            XCTAssertEqual(groups.map(\.utf8.count), [5, 5, 5, 5, 5, 5])
            XCTAssertTrue(groups.joined().utf8.allSatisfy { (0x30...0x39).contains($0) }, each)
        }
        for epoch in [0, 65_536, -1] {
            XCTAssertEqual(logErrorCode { _ = try digits(epoch: epoch) }, .malformed, "epoch \(epoch)")
        }
    }

    func testAReceiverWithoutAPointOfP256IsSealedForByNone() async throws {
        for publicKey in ["", "?", "AAAA"] {
            let code = await codeOf { _ = try KeyHolder(userId: 1, deviceId: 2, publicKey: publicKey) }
            XCTAssertEqual(code, "KEY_UNSUPPORTED", publicKey)
        }
        let (ann, bob) = try annAndBob()
        let untouched = ChangedKeys(keys: ann.keys, publicKey: ann.keys.publicKey, isUntouchable: true)
        let own = try OwnKeyHolder(userId: 1, deviceId: 11, keys: untouched)
        let off = try decodeBase64(bob.keys.publicKey).changed(at: 90)
        for point in [off, [UInt8](repeating: 0, count: 65), [4] + [UInt8](repeating: 0, count: 64)] {
            let strange = try KeyHolder(userId: 2, deviceId: 22, publicKey: encodeBase64(point))
            let code = await codeOf { _ = try await sealCallKey(makeCallKey(), from: own, to: strange, binding: binding) }
            XCTAssertEqual(code, "KEY_UNSUPPORTED", hex(point))
        }
    }
}

extension KeyHolder {
    fileprivate var publicKeyOfTest: String {
        switch key {
        case .p256(let octets), .rsa(let octets): encodeBase64(octets)
        }
    }
}
