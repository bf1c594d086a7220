import Foundation
import TestSupport
import XCTest

@testable import CallsignVerify

// The entries since the newest leaf of an index: from where they are read, and which of them are believed.

/// A log's tiles and entry bundles; a test may answer a path in another way.
private final class TiledLog: LogTransport {
    static let notThere = LogAnswer(status: 404, body: [])

    let requests = Locked<[LogRequest]>([])
    let lie = Locked<@Sendable (String) throws -> LogAnswer?>({ _ in nil })
    private let entries: [[UInt8]]
    private let leaves: [[UInt8]]

    init(_ entries: [[UInt8]]) {
        self.entries = entries
        leaves = entries.map { hashLeaf($0) }
    }

    var source: TailSource {
        let requests = LogRequests(url: "https://log.example", transport: self, timeoutMs: 20_000)
        return TailSource(tiles: { try await requests.tile($0) }, entries: { try await requests.entries($0) })
    }

    func checkpoint(_ treeSize: Int) throws -> SignedCheckpoint {
        let root = encodeBase64(try naiveRoot(leaves.prefix(treeSize)))
        return SignedCheckpoint(origin: "log.example", treeSize: treeSize, rootHash: root, note: "")
    }

    func send(_ request: LogRequest) async throws -> LogAnswer {
        requests.with { $0.append(request) }
        let path = String(request.url.dropFirst("https://log.example/".count))
        return try lie.with { $0 }(path) ?? answer(path)
    }

    /// `tile/<level or entries>/<index>[.p/<width>]`, of indexes below 1000.
    func answer(_ path: String) throws -> LogAnswer {
        let words = path.split { $0 == "/" || $0 == "." }
        guard words.count == 3 || words.count == 5, let index = Int(words[2]),
            let width = Int(words.count == 5 ? words[4] : "256")
        else { return Self.notThere }
        let places = 256 * index..<256 * index + width
        if words[1] == "entries" {
            return places.upperBound > entries.count
                ? Self.notThere : LogAnswer(status: 200, body: bundleOf(entries[places]))
        }
        let level = 8 * (try known(Int(words[1]), path))
        if places.upperBound << level > entries.count { return Self.notThere }
        let hashes = try readerOf(leaves)(places.map { Node(level: level, index: $0) })
        return LogAnswer(status: 200, body: Array(hashes.joined()))
    }
}

private func bundleOf(_ entries: ArraySlice<[UInt8]>) -> [UInt8] {
    entries.flatMap { bigEndianOctets(UInt64($0.count), count: 2) + $0 }
}

private func hashOf(_ number: Int) -> String { encodeBase64([UInt8](repeating: UInt8(number), count: 64)) }

/// Entry n is of hash n mod 200.
private func entriesUpTo(_ size: Int, key: String = "AAAA") -> [[UInt8]] {
    (0..<size).map { Array("\(hashOf($0 % 200))\n\(key)\n".utf8) }
}

final class IndexTailTests: XCTestCase {
    private func read(_ log: TiledLog, _ older: Int, _ newer: Int, _ others: TailSource...) async throws -> Outcome<IndexTail> {
        try await IndexTails([log.source] + others).read(older: log.checkpoint(older), newer: log.checkpoint(newer))
    }

    private func assertRead(_ log: TiledLog, _ older: Int, _ newer: Int, _ others: TailSource...) async throws {
        let tails = IndexTails([log.source] + others)
        guard case .holds(let tail) = try await tails.read(older: log.checkpoint(older), newer: log.checkpoint(newer)) else {
            return XCTFail("\(older) to \(newer) is not read")
        }
        for number in [0, 7, 44, 199] {
            XCTAssertEqual(tail.under(hashOf(number)), (older..<newer).filter { $0 % 200 == number }, "hash \(number)")
        }
        XCTAssertEqual(tail.under(hashOf(200)), [])
    }

    private func assertLost(_ outcome: Outcome<IndexTail>, _ message: String) -> String {
        guard case .unanswered(let unanswered) = outcome else {
            XCTFail(message)
            return ""
        }
        XCTAssertEqual(unanswered.check, .tiles, message)
        return unanswered.detail
    }

    func testEachEntryIsFoundUnderItsHashUpToTheMostThatAreRead() async throws {
        let log = TiledLog(entriesUpTo(20 + IndexTails.entriesMax))
        try await assertRead(log, 20, 20 + IndexTails.entriesMax)
        try await assertRead(log, 256, 512)
        try await assertRead(log, 255, 257)
        try await assertRead(log, 0, 20)
    }

    /// An index has an entry under the hash that it begins with. A log that lets more follow than a key hides it from nobody.
    func testAnEntryOfAnotherFormIsUnderTheHashThatItBeginsWith() async throws {
        let odd = ["x\nAAAA\n", "", " \n"].map { Array("\(hashOf(7))\($0)".utf8) }
        let log = TiledLog(entriesUpTo(20) + odd + [Array(hashOf(7).utf8.dropLast())])
        guard case .holds(let tail) = try await read(log, 10, 24) else { return XCTFail("not read") }
        XCTAssertEqual(tail.under(hashOf(7)), [20, 21, 22])
    }

    func testALogThatHasDroppedItsPartialBundlesServesTheFullOnes() async throws {
        let log = TiledLog(entriesUpTo(300))
        log.lie.with { $0 = { $0.contains(".p/") ? TiledLog.notThere : nil } }
        try await assertRead(log, 10, 200)
    }

    func testLookupsOfOneAnswerReadTheTailOnceAndOneFromAnotherTreeReadsItsOwn() async throws {
        let log = TiledLog(entriesUpTo(40))
        let tails = IndexTails([log.source])
        let (older, newer, other) = (try log.checkpoint(10), try log.checkpoint(39), try log.checkpoint(40))
        try await withThrowingTaskGroup(of: Outcome<IndexTail>.self) { group in
            for _ in 0..<3 { group.addTask { try await tails.read(older: older, newer: newer) } }
            for try await outcome in group {
                guard case .holds = outcome else { return XCTFail("not read") }
            }
        }
        guard case .holds = try await tails.read(older: older, newer: other) else { return XCTFail("not read") }
        let bundles = log.requests.with { $0 }.map(\.url).filter { $0.contains("entries") }
        XCTAssertEqual(bundles, ["39", "40"].map { "https://log.example/tile/entries/000.p/\($0)" })
    }

    func testEntriesThatDoNotLeadFromTheOneRootToTheOtherAreNotBelievedAndAnotherSourceMayHaveTheRightOnes() async throws {
        let log = TiledLog(entriesUpTo(300))
        let honest = TiledLog(entriesUpTo(300)).source
        let other = TiledLog(entriesUpTo(300, key: "BBBB"))
        var entries = entriesUpTo(301)
        entries.swapAt(30, 300)
        let swapped = TiledLog(entries.dropLast())
        func instead(_ change: @escaping @Sendable (LogAnswer) throws -> [UInt8]) -> @Sendable (String) throws -> LogAnswer? {
            { $0.contains("entries") ? LogAnswer(status: 200, body: try change(log.answer($0))) : nil }
        }
        let lies: [(String, @Sendable (String) throws -> LogAnswer?)] = [
            ("another log", { try other.answer($0) }),
            ("the entries of another log", { $0.contains("entries") ? try other.answer($0) : nil }),
            ("the tiles of another log", { $0.contains("entries") ? nil : try other.answer($0) }),
            ("an entry in place of another", { $0.contains("entries") ? try swapped.answer($0) : nil }),
            ("an octet too few", instead { $0.body.dropLast() }),
            ("half a length more", instead { $0.body + [0] }),
            ("an entry more", instead { $0.body + [0, 0] }),
            ("nothing", instead { _ in [] }),
            ("another status", { $0.contains("entries") ? TiledLog.notThere : nil }),
            ("no network", instead { _ in throw URLError(.notConnectedToInternet) }),
        ]
        for (name, lie) in lies {
            log.lie.with { $0 = lie }
            _ = assertLost(try await read(log, 10, 300), name)
            try await assertRead(log, 10, 300, honest)
        }
        log.lie.with { $0 = { _ in nil } }
        // From a root that is none of this log.
        let foreign = try await IndexTails([log.source]).read(older: other.checkpoint(10), newer: log.checkpoint(300))
        _ = assertLost(foreign, "another root")
    }

    func testNoBundleMayHaveMoreOctetsThanEntriesHave() async throws {
        let log = TiledLog(entriesUpTo(300))
        try await assertRead(log, 10, 300)
        let bounds = log.requests.with { $0 }.filter { $0.url.contains("entries") }
            .map { "\($0.url.dropFirst("https://log.example/tile/entries/".count)) \($0.answerOctetsMax)" }
        XCTAssertEqual(Set(bounds), ["000 \(256 * 1_116)", "001.p/44 \(44 * 1_116)"])
        log.lie.with {
            $0 = { $0.contains("entries") ? LogAnswer(status: 200, body: [UInt8](repeating: 0, count: 256 * 1_116 + 1)) : nil }
        }
        // The one that does not come first may be the one that is told.
        let detail = assertLost(try await read(log, 10, 300), "too long")
        XCTAssert(detail.contains("more than \(256 * 1_116)") || detail.contains("more than \(44 * 1_116)"), detail)
    }
}

final class IndexKeysTests: XCTestCase {
    private func keys() throws -> JSONValue { try readVectors("index-lookups").get("keys") }

    func testAnIndexIsKnownByItsKeyAndDemandedWhereAPolicyNamesIt() throws {
        let plain = try keys().get("plain")
        let (vkey, indexVkey, vrfPublicKey) = try (plain.text("vkey"), plain.text("indexVkey"), plain.text("vrfPublicKey"))
        XCTAssertNil(try LogKeys.ofVerifierKey(vkey, vrfPublicKey: vrfPublicKey).index)
        XCTAssertEqual(try keysOf(plain).index?.isDemanded, false)
        let policy = "log \(indexVkey)\nlog \(vkey)\nquorum none\n"
        let witnessed = try LogKeys.ofPolicy(policy, vrfPublicKey: vrfPublicKey)
        XCTAssertEqual(witnessed.origin, "log.example/kt")
        XCTAssertEqual(witnessed.name, "log.example/kt")
        let index = try known(witnessed.index, "index")
        XCTAssertEqual(index.log.origin, "log.example/kt/index")
        XCTAssertNil(index.log.quorum)
        XCTAssert(index.isDemanded && !index.isRebuilt)
    }

    func testMembersCalledRebuildersAreTheIndexsQuorumAndTheLogsStaysWhatItIs() throws {
        let rebuilt = try keysOf(keys().get("rebuilt"))
        let index = try known(rebuilt.index, "index")
        XCTAssertEqual(rebuilt.quorum?.name, "two")
        XCTAssertEqual(index.log.quorum?.name, "rebuilders")
        XCTAssert(index.isRebuilt)
        let witnessed = try known(keysOf(keys().get("witnessed")).index, "index")
        XCTAssertEqual(witnessed.log.quorum?.name, "two")
        XCTAssertFalse(witnessed.isRebuilt)
    }

    func testTheKeyOfAnotherLogsIndexIsNoneOfThisOne() throws {
        let plain = try keys().get("plain")
        let (vkey, indexVkey, vrfPublicKey) = try (plain.text("vkey"), plain.text("indexVkey"), plain.text("vrfPublicKey"))
        for own in [vkey, indexVkey] {
            let code = logErrorCode { _ = try LogKeys.ofVerifierKey(own, vrfPublicKey: vrfPublicKey, indexVkey: own) }
            XCTAssertEqual(code, .keyInvalid)
        }
        let (name, publicKey) = ("log.example/kt/index/index", [UInt8](repeating: 1, count: 32))
        let further = "\(name)+\(hexId(keyIdOf(name, ed25519Type, publicKey)))+\(encodeBase64([ed25519Type] + publicKey))"
        let policy = "log \(vkey)\nlog \(indexVkey)\nlog \(further)\nquorum none\n"
        XCTAssertEqual(logErrorCode { _ = try LogKeys.ofPolicy(policy, vrfPublicKey: vrfPublicKey) }, .keyInvalid)
    }
}

final class BegunAnewTests: XCTestCase {
    private struct Anew {
        let old: LogKeys
        let new: LogKeys
        let oldIndex: IndexKeys
        let newIndex: IndexKeys
        let proof: VerifiedIndex
    }

    private func anew() throws -> Anew {
        let vectors = try readVectors("index-lookups")
        let first = vectors.list("cases")[0]
        let old = try keysOf(vectors.get("keys").get("plain"))
        let new = try keysOf(vectors.get("keys").get("otherKey"))
        let oldIndex = try known(old.index, "index")
        let proof = try verifyIndex(
            old, oldIndex, vrfHash: first.text("vrfHash"), proof: first["proof"], nowMs: first.number("nowMs"), maxAgeMs: 1)
        return Anew(old: old, new: new, oldIndex: oldIndex, newIndex: try known(new.index, "index"), proof: proof)
    }

    private func kept(_ checkpoint: SignedCheckpoint) async -> MemoryCheckpointStore {
        let store = MemoryCheckpointStore()
        await store.put(KeptCheckpoint(checkpoint: checkpoint, pending: [checkpoint.note], openSinceMs: 1))
        return store
    }

    func testAKeptCheckpointOfAnotherKeyAloneCountsAsNoneAndDemandsAllTheSame() async throws {
        let anew = try anew()
        let output = anew.proof.output
        let store = await kept(output)
        let pin = CheckpointPin(anew.newIndex.log, store, [], maxAgeMs: nil, mayBegin: true)
        let (highest, hasSeen) = (try await pin.highest(), try await pin.hasSeen())
        XCTAssertNil(highest)
        XCTAssert(hasSeen)
        let logPin = CheckpointPin(anew.new, MemoryCheckpointStore(), [], maxAgeMs: nil)
        let check = IndexCheck(
            keys: anew.new, index: anew.newIndex, demand: .whenOffered, maxAgeMs: 1, nowMs: { 0 }, logPin: logPin, pin: pin,
            tails: IndexTails([]))
        guard case .refused(let refusal) = try await check.absent(1, 0, nil) else { return XCTFail("not refused") }
        XCTAssertEqual(refusal.check, .completeness)
        let begun = SignedCheckpoint(origin: output.origin, treeSize: 1, rootHash: output.rootHash, note: output.note)
        guard case .accepted = try await pin.accept(begun, nowMs: 2) else { return XCTFail("not accepted") }
        let now = await store.get(anew.newIndex.log.origin)
        XCTAssertEqual(now, KeptCheckpoint(checkpoint: begun))
    }

    func testOneThatAPresentKeyIsSaidToHaveSignedHasToHoldAndTheLogItselfBeginsOnce() async throws {
        let anew = try anew()
        let output = anew.proof.output
        func codeOfRead(_ checkpoint: SignedCheckpoint, _ keys: LogKeys, mayBegin: Bool = true) async -> LogError.Code? {
            do {
                _ = try await CheckpointPin(keys, kept(checkpoint), [], maxAgeMs: nil, mayBegin: mayBegin).highest()
                return nil
            } catch {
                return (error as? LogError)?.code
            }
        }
        func noted(_ note: String) -> SignedCheckpoint {
            SignedCheckpoint(origin: output.origin, treeSize: output.treeSize, rootHash: output.rootHash, note: note)
        }
        let lines = output.note.split(separator: "\n", omittingEmptySubsequences: false)
        let forged = noted((lines[..<2] + ["\(lines[2])", "1"] + lines[3...]).joined(separator: "\n"))
        let codes = [
            await codeOfRead(output, anew.newIndex.log, mayBegin: false),
            await codeOfRead(forged, anew.oldIndex.log),
            await codeOfRead(noted("no note"), anew.newIndex.log),
        ]
        XCTAssertEqual(codes, [.malformed, .malformed, .malformed])
    }
}
