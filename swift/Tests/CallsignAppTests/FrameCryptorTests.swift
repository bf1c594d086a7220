import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// The rules of `FrameCryptor`, as `test/app/media/frames.test.ts` has them.
final class FrameCryptorTests: XCTestCase {
    private let callId = "6117204471893025"
    private let opus = [0x78] + [UInt8](repeating: 0x55, count: 40)

    private func cryptor(_ epochs: Int..., using used: Int? = nil) -> FrameCryptor {
        let cryptor = FrameCryptor(callId: callId)
        for epoch in epochs { cryptor.setKey(epoch: epoch, key(epoch)) }
        if let first = used ?? epochs.first { cryptor.useKey(epoch: first) }
        return cryptor
    }

    private func key(_ epoch: Int) -> [UInt8] { sha256(Array("epoch \(epoch)".utf8)) }

    private func sealed(by cryptor: FrameCryptor) throws -> [UInt8] { try known(cryptor.seal(.opus, opus), "frame") }

    private func headerOfNext(_ cryptor: FrameCryptor) throws -> SFrameHeader { try header(of: sealed(by: cryptor)) }

    /// `opened`, or why it was not.
    private func outcome(_ octets: [UInt8], by cryptor: FrameCryptor) -> String {
        switch cryptor.open(.opus, octets) {
        case .opened(let opened): opened.frame == opus ? "opened" : hex(opened.frame)
        case .unopened(let reason): reason.rawValue
        }
    }

    private func header(of frame: [UInt8]) throws -> SFrameHeader { try known(parseSFrameHeader(frame), "header") }

    func testSendersWithOneKeyNeverShareKeyAndNonce() throws {
        let senders = (0..<20).map { _ in cryptor(1) }
        let headers = try senders.flatMap { try [headerOfNext($0), headerOfNext($0)] }
        XCTAssertEqual(Set(headers.map(\.kid)).count, senders.count)
        XCTAssertEqual(Set(headers.map { "\($0.kid) \($0.counter)" }).count, headers.count)
        XCTAssertTrue(headers.allSatisfy { $0.kid >> 48 == 1 })
    }

    func testTheCounterNeverGoesBackAlsoBetweenThreads() async throws {
        let ann = cryptor(1, 2)
        let first = try headerOfNext(ann)
        ann.useKey(epoch: 1)
        ann.setKey(epoch: 1, key(1))
        let second = try headerOfNext(ann)
        XCTAssertEqual([second.kid, second.counter], [first.kid, first.counter + 1])
        ann.useKey(epoch: 2)
        let third = try headerOfNext(ann)
        XCTAssertEqual([third.kid, third.counter], [first.kid + 1 << 48, first.counter + 2])
        let frame = opus
        let counters = await withTaskGroup(of: UInt64?.self) { group in
            for _ in 0..<400 { group.addTask { ann.seal(.opus, frame).flatMap(parseSFrameHeader)?.counter } }
            return await group.reduce(into: Set<UInt64>()) { if let counter = $1 { $0.insert(counter) } }
        }
        XCTAssertEqual(counters.count, 400)
        XCTAssertEqual(counters.min(), first.counter + 3)
    }

    func testWithoutAKeyNothingIsSentAndNothingOpened() throws {
        let (ann, bob) = (cryptor(1), cryptor())
        XCTAssertNil(bob.seal(.opus, opus))
        XCTAssertFalse(bob.useKey(epoch: 1))
        let frame = try sealed(by: ann)
        XCTAssertEqual(outcome(frame, by: bob), "no-key")
        bob.setKey(epoch: 1, key(7))
        XCTAssertEqual(outcome(frame, by: bob), "not-authentic")
        bob.setKey(epoch: 1, key(1))
        XCTAssertEqual(outcome(frame, by: bob), "opened")
        XCTAssertFalse(ann.useKey(epoch: nil))
        XCTAssertNil(ann.seal(.opus, opus))
        XCTAssertTrue(ann.useKey(epoch: 1))
        ann.dropKey(epoch: 1)
        XCTAssertNil(ann.seal(.opus, opus))
        let other = FrameCryptor(callId: "42")
        other.setKey(epoch: 1, key(1))
        XCTAssertEqual(outcome(frame, by: other), "not-authentic", "the key of another call")
        for (epoch, key) in [(65_536, key(1)), (0, key(1)), (3, [UInt8](repeating: 0, count: 32))] {
            let unheld = cryptor()
            unheld.setKey(epoch: epoch, key)
            XCTAssertFalse(unheld.useKey(epoch: epoch), "KIDs have no room for the epoch, or the key was wiped")
        }
    }

    func testARotationLosesNoFrameAndAnEpochThatWasDroppedIsOpenedNoMore() throws {
        let (ann, bob) = (cryptor(1), cryptor(1))
        let before = try sealed(by: ann)
        for each in [ann, bob] { each.setKey(epoch: 2, key(2)) }
        let late = try sealed(by: ann)
        ann.useKey(epoch: 2)
        let after = try sealed(by: ann)
        for frame in [before, after, late] { XCTAssertEqual(outcome(frame, by: bob), "opened") }
        let last = try sealed(by: ann)
        bob.dropKey(epoch: 2)
        XCTAssertEqual(outcome(last, by: bob), "no-key")
        for epoch in 3...6 { bob.setKey(epoch: epoch, key(epoch)) }
        XCTAssertEqual(outcome(try sealed(by: cryptor(1)), by: bob), "no-key", "four are held, the newest")
    }

    func testAFrameIsOpenedOnceInAnyOrderWithinTheWindow() throws {
        let (ann, bob) = (cryptor(1), cryptor(1))
        let frames = try (0..<1_100).map { _ in try sealed(by: ann) }
        func last(_ number: Int) -> String { outcome(frames[frames.count - number], by: bob) }
        XCTAssertEqual(last(1), "opened")
        XCTAssertEqual(last(1), "replayed")
        XCTAssertEqual(last(1_024), "opened")
        XCTAssertEqual(last(1_024), "replayed")
        XCTAssertEqual(last(1_025), "replayed", "too old to tell")
        XCTAssertEqual(last(500), "opened")
        bob.setKey(epoch: 1, key(1))
        XCTAssertEqual(last(500), "replayed", "the key was sent again")
        var window = ReplayWindow()
        let highest = UInt64.max
        XCTAssertEqual([highest - 1, highest - 1, 5, highest].map { window.add($0) }, [true, false, false, true])
    }

    func testTheWindowHasTheSameAnswersAsAPlainSet() {
        var window = ReplayWindow()
        var seen: Set<UInt64> = []
        var newest: UInt64 = 0
        for _ in 0..<20_000 {
            let step = UInt64.random(in: 0..<(Bool.random() ? 8 : 2_000))
            let counter = Bool.random() ? newest + step : newest - min(newest, step)
            let isNew = !seen.contains(counter) && (counter > newest || newest - counter < 1_024)
            XCTAssertEqual(window.add(counter), isNew, "\(counter) after \(newest)")
            seen.insert(counter)
            newest = max(newest, counter)
        }
    }

    func testAnAppWhoseOwnFramesComeBackTakesAnotherKIDAndOpensNoneOfThem() throws {
        let (ann, bob) = (cryptor(1), cryptor(1))
        let frame = try sealed(by: ann)
        XCTAssertEqual(outcome(frame.changed(at: frame.count - 1), by: ann), "not-authentic")
        XCTAssertEqual(try headerOfNext(ann).kid, try header(of: frame).kid, "a forged one changes nothing")
        XCTAssertEqual(outcome(frame, by: ann), "reflected")
        let next = try sealed(by: ann)
        XCTAssertNotEqual(try header(of: next).kid, try header(of: frame).kid)
        XCTAssertEqual(outcome(next, by: bob), "opened")
        for _ in 0..<10 { XCTAssertEqual(outcome(try sealed(by: ann), by: ann), "reflected") }
        XCTAssertEqual(try headerOfNext(ann).kid, try headerOfNext(ann).kid, "not for ever")
    }

    func testTheSendersOfAnEpochAreBoundedAndForgedOnesDoNotCount() throws {
        let (bob, first) = (cryptor(1), cryptor(1))
        XCTAssertEqual(outcome(try sealed(by: first), by: bob), "opened")
        let frame = try sealed(by: cryptor(1))
        for number in 0..<4_100 as Range<UInt64> {
            // The last four octets of the KID, behind the header's first octet and the epoch.
            _ = bob.open(.opus, frame[..<4] + bigEndianOctets(number, count: 4) + frame[8...])
        }
        func fillsEpoch() throws -> Bool? {
            guard case .opened(let opened) = bob.open(.opus, try sealed(by: cryptor(1))) else { return nil }
            return opened.fillsEpoch
        }
        for _ in 0..<4_094 { XCTAssertEqual(try fillsEpoch(), false) }
        XCTAssertEqual(try fillsEpoch(), true, "the last one")
        XCTAssertEqual(outcome(try sealed(by: cryptor(1)), by: bob), "too-many-senders")
        XCTAssertEqual(outcome(try sealed(by: first), by: bob), "opened", "those known go on")
    }

    func testASendersOldKeyOpensItsFramesUntilFiveSecondsAfterItsFirstWithTheNewOne() throws {
        let now = Locked(1_000)
        let bob = FrameCryptor(callId: callId) { now.with { $0 } }
        for epoch in 1...2 { bob.setKey(epoch: epoch, key(epoch)) }
        let (ann, cid) = (cryptor(1, 2), cryptor(1, 2))
        let late = try [sealed(by: ann), sealed(by: ann)]
        ann.useKey(epoch: 2)
        XCTAssertEqual(outcome(try sealed(by: ann), by: bob), "opened")
        now.with { $0 += 4_999 }
        XCTAssertEqual(outcome(late[0], by: bob), "opened")
        now.with { $0 += 1 }
        XCTAssertEqual(outcome(late[1], by: bob), "replayed")
        XCTAssertEqual(outcome(try sealed(by: cid), by: bob), "opened", "who has not switched is heard")
    }
}
