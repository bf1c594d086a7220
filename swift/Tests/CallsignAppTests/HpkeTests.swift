import CallsignCrypto
import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// A key that remembers how many points it met.
private final class TestKey: Sendable {
    private let pair: KeyPair
    private let count = Locked(0)

    init(_ pair: KeyPair = KeyPair()) { self.pair = pair }

    var point: [UInt8] { pair.point }
    var met: Int { count.with { $0 } }
    var key: AgreementKey {
        AgreementKey(point: pair.point) { [count, pair] point in
            count.with { $0 += 1 }
            return try pair.agree(point)
        }
    }
}

private func key(_ vector: JSONValue, _ name: String) throws -> TestKey {
    TestKey(try KeyPair(secret: vector.hex("sk\(name)"), point: vector.hex("pk\(name)")))
}

private func context(_ vector: JSONValue) throws -> HpkeContext {
    let id = try vector.number("aead_id")
    return HpkeContext(info: try vector.hex("info"), aad: try vector.hex("aad"), aead: Aead(id: id, keyOctets: 16 * id))
}

/// HPKE against the values of RFC 9180, those of a library, and attackers.
final class HpkeTests: XCTestCase {
    func testValuesOfRFC9180AndOfALibraryComeOut() async throws {
        let vectors = try readVectors("hpke").list("vectors")
        XCTAssertEqual(try vectors.map { try $0.number("aead_id") }, [1, 2])
        for vector in vectors {
            let (ephemeral, receiver, sender) = (try key(vector, "Em"), try key(vector, "Rm"), try key(vector, "Sm"))
            let plaintext = try vector.hex("pt")
            let context = try context(vector)
            let sealed = try await sealAuth(
                plaintext, sender: sender.key, receiver: receiver.point, context, ephemeral: ephemeral.key)
            let source = try vector.text("source")
            XCTAssertEqual(hex(sealed), try vector.text("pkEm") + vector.text("ct"), source)
            let opened = try await openAuth(sealed, sender: sender.point, receiver: receiver.key, context)
            XCTAssertEqual(opened, plaintext)
            XCTAssertEqual([sender.met, receiver.met], [1, 2], "AuthEncap takes one agreement, AuthDecap two")
        }
    }

    func testNoPrivateKeyMeetsAPointThatIsNotOnTheCurve() async throws {
        let (sender, receiver) = (TestKey(), TestKey())
        let context = HpkeContext(info: [0, 0, 0, 0])
        let plaintext = [UInt8](repeating: 0, count: 32)
        let sealed = try await sealAuth(plaintext, sender: sender.key, receiver: receiver.point, context)
        for (what, point) in try noPoints(receiver.point) {
            let isNoReceiver = await isRefused {
                _ = try await sealAuth(plaintext, sender: sender.key, receiver: point, context)
            }
            let isNoSender = await isRefused {
                _ = try await openAuth(sealed, sender: point, receiver: receiver.key, context)
            }
            XCTAssertTrue(isNoReceiver && isNoSender, what)
            if point.count != pointOctets { continue }
            let changed = point + sealed.dropFirst(pointOctets)
            let isNoEnc = await isRefused {
                _ = try await openAuth(changed, sender: sender.point, receiver: receiver.key, context)
            }
            XCTAssertTrue(isNoEnc, what)
        }
        XCTAssertEqual([sender.met, receiver.met], [1, 0])
    }

    /// Octets that are no public key of RFC 9180, 7.1.1.
    private func noPoints(_ point: [UInt8]) throws -> [String: [UInt8]] {
        let prime = try fromHex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
        let parity = point[64] & 1
        return [
            "off the curve": point.changed(at: 64),
            "zeros, which some take for infinity": [UInt8](repeating: 0, count: 65),
            "infinity, as SEC 1 has it": [0],
            "x and y are zero": [4] + [UInt8](repeating: 0, count: 64),
            "a coordinate that is the prime": [4] + prime + prime,
            "compressed": [2 + parity] + point[1..<33],
            "hybrid": [6 + parity] + point.dropFirst(),
            "cut off": point.dropLast(),
            "an octet too long": point + [0],
            "empty": [],
        ]
    }

    func testOnlyTheSameKeysInfoAadAndOctetsOpenIt() async throws {
        let (sender, receiver, eve) = (TestKey(), TestKey(), TestKey())
        let context = HpkeContext(info: [1, 2], aad: [3])
        let sealed = try await sealAuth(
            [UInt8](repeating: 0, count: 32), sender: sender.key, receiver: receiver.point, context)
        func assertRefused(
            _ what: String, _ octets: [UInt8]? = nil, from: [UInt8]? = nil, to: AgreementKey? = nil, by: HpkeContext? = nil
        ) async {
            let refused = await isRefused {
                _ = try await openAuth(
                    octets ?? sealed, sender: from ?? sender.point, receiver: to ?? receiver.key, by ?? context)
            }
            XCTAssertTrue(refused, what)
        }
        await assertRefused("another sender", from: eve.point)
        await assertRefused("the receiver as the sender", from: receiver.point)
        await assertRefused("another receiver", to: eve.key)
        await assertRefused("the sender as the receiver", to: sender.key)
        await assertRefused("another receiver's name", to: AgreementKey(point: eve.point, agree: receiver.key.agree))
        await assertRefused("another info", by: HpkeContext(info: [1], aad: [3]))
        await assertRefused("another aad", by: HpkeContext(info: [1, 2]))
        await assertRefused("another aead", by: HpkeContext(info: [1, 2], aad: [3], aead: Aead(id: 1, keyOctets: 16)))
        for octets in sealed.oneBitChanged { await assertRefused(hex(octets), octets) }
        for octets in sealed.cut { await assertRefused("\(octets.count) octets", octets) }
        await assertRefused("an octet longer", sealed + [0])
    }
}
