import CallsignCrypto
import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

private func person(_ id: UInt64, _ identity: String) -> CallParticipant {
    CallParticipant(
        userId: id, displayName: "", name: "", state: .joined, isHost: false, invitedBy: 1, deviceId: id, mediaName: "",
        feedIds: [], invitedAtMs: 0, identity: identity)
}

/// The vectors, and the same rules as `test/app/livekit/livekit.test.ts`.
final class LiveKitKeysTests: XCTestCase {
    private let now = Locked(0)
    private lazy var slots = LiveKitSlots { [now] in now.with { $0 } }
    private let ann = person(1, "ann")
    private let bob = person(2, "bob")
    private lazy var participants = [ann, bob]

    private func octets(_ epoch: Int) -> [UInt8] { [UInt8](repeating: UInt8(epoch), count: 32) }

    private func call(_ sending: Int, _ epochs: [Int], isOver: Bool = false) -> LiveKitCall {
        LiveKitCall(
            callId: "42", userId: 1, isOver: isOver,
            keys: epochs.map { EpochKey(epoch: $0, secret: Secret(octets($0)), fingerprint: "") }, sendingEpoch: sending,
            participants: participants)
    }

    private func follow(_ sending: Int, _ epochs: Int...) -> [String] { slots.follow(call(sending, epochs)).map(inShort) }

    private func inShort(_ slot: LiveKitSlot) -> String {
        "\(slot.identity) \(slot.keyIndex)\(slot.isSending ? " sends" : slot.isOver ? " over" : "")"
    }

    func testKeysAreThoseOfTheVectorsAndTheAESKeysThatLiveKitDerivesFromThem() throws {
        for vector in try readVectors("livekit-keys").list("keys") {
            let (userId, deviceId) = (uint64(try vector.text("user_id")), uint64(try vector.text("device_id")))
            let key = try liveKitKey(
                vector.hex("call_key_hex"), callId: vector.text("call_id"), epoch: vector.number("epoch"),
                userId: known(userId, "user_id"), deviceId: known(deviceId, "device_id"))
            XCTAssertEqual(key, try vector.text("key"))
            XCTAssertEqual(hex(Array(derived(key)[..<16])), try vector.text("aes_128_hex"))
        }
        for (callId, epoch) in [("x", 1), ("+1", 1), ("1", -1), ("1", 1 << 32)] {
            let code = logErrorCode { _ = try liveKitKey(octets(1), callId: callId, epoch: epoch, userId: 1, deviceId: 1) }
            XCTAssertEqual(code, .malformed)
        }
    }

    /// PBKDF2 (RFC 8018, 5.2), one block of it.
    private func derived(_ password: String) -> [UInt8] {
        let key = Array(password.utf8)
        var block = platform.hmacSHA256(key: key, Array("LKFrameEncryptionKey".utf8) + [0, 0, 0, 1])
        var sum = block
        for _ in 1..<100_000 {
            block = platform.hmacSHA256(key: key, block)
            for at in sum.indices { sum[at] ^= block[at] }
        }
        return sum
    }

    func testEachDeviceHasAKeyForEachEpochSealsWithTheOneThatAllHaveAndASlotThatIsOverIsOverwritten() throws {
        let first = slots.follow(call(1, [1]))
        XCTAssertEqual(first.map(inShort), ["bob 1", "ann 1 sends"])
        XCTAssertEqual(first[0].key, try liveKitKey(octets(1), callId: "42", epoch: 1, userId: 2, deviceId: 2))
        XCTAssertEqual(follow(1, 2, 1), ["bob 2"])
        XCTAssertEqual(follow(2, 2, 1), ["ann 2 sends"])
        XCTAssertEqual(follow(2, 2, 1), [])
        let over = slots.follow(call(2, [2]))
        XCTAssertEqual(over.map(inShort), ["bob 1 over", "ann 1 over", "ann 2 sends"])
        XCTAssertEqual(Set([first[0].key, over[0].key, over[1].key]).count, 3)
        XCTAssertEqual(follow(18, 18, 2), ["bob 2", "ann 2 sends"])
    }

    func testKeysOfAMemberWhoLeavesAreOverwrittenAndALabelOfThisDeviceIsNobodyElses() {
        _ = follow(1, 1)
        participants = [ann]
        XCTAssertEqual(follow(1, 1), ["bob 1 over"])
        var other = bob
        other.identity = "ann"
        participants = [ann, other]
        XCTAssertEqual(follow(1, 1), [])
        other = bob
        other.state = .left
        participants = [ann, other]
        XCTAssertEqual(follow(1, 1), [])
    }

    func testAFifteenthEpochWithinAMinuteWaits() {
        _ = follow(1, 1)
        for epoch in 2...14 {
            now.with { $0 += 1_000 }
            _ = follow(epoch, epoch, epoch - 1)
        }
        XCTAssertEqual(follow(15, 15, 14), ["bob 13 over", "ann 13 over", "ann 14 sends"])
        XCTAssertEqual(slots.waitMs, 47_000)
        now.with { $0 += 47_000 }
        XCTAssertEqual(follow(15, 15, 14), ["bob 15", "ann 15 sends"])
    }

    func testAKeyThatWasWipedIsNoKey() {
        let secret = Secret(octets(1))
        var call = call(1, [])
        call.keys = [EpochKey(epoch: 1, secret: secret, fingerprint: "")]
        secret.wipe()
        XCTAssertEqual(slots.follow(call), [])
    }

    func testTheStreamFollowsTheCallToItsEnd() async {
        let calls = Watched(call(1, [1]))
        var slots = slotsOf(calls).makeAsyncIterator()
        var all: [String] = []
        for _ in 0..<2 { if let slot = await slots.next() { all.append(inShort(slot)) } }
        calls.set(call(1, [], isOver: true))
        while let slot = await slots.next() { all.append(inShort(slot)) }
        XCTAssertEqual(all, ["bob 1", "ann 1 sends", "bob 1 over", "ann 1 over"])
    }

    func testAPhoneTakesKeysOf128BitsAlone() async {
        var media = CallGateway(kind: "livekit")
        for (keySize, code) in [(nil, "MEDIA_UNSUPPORTED"), (256, "MEDIA_UNSUPPORTED"), (128, nil)] as [(Int?, String?)] {
            media.keySize = keySize
            let given = media
            let thrown = await codeOf { try assertAES128(given) }
            XCTAssertEqual(thrown, code)
        }
    }
}
