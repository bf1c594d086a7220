import TestSupport
import XCTest

@testable import CallsignVerify

final class CertificateTransparencyTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("merkle-ct") }

    private func leaves() throws -> [[UInt8]] { try vectors().texts("leaves").map { hashLeaf(try fromHex($0)) } }

    func testHashesAndRootsAreThoseOfCertificateTransparency() throws {
        let vectors = try vectors()
        XCTAssertEqual(hex(emptyRoot), try vectors.text("empty_root"))
        for example in vectors.list("leaf_hash") {
            XCTAssertEqual(hex(hashLeaf(try example.hex("data"))), try example.text("hash"))
        }
        for example in vectors.list("node_hash") {
            XCTAssertEqual(hex(try hashNode(example.hex("left"), example.hex("right"))), try example.text("hash"))
        }
        for (at, root) in try vectors.texts("roots").enumerated() {
            XCTAssertEqual(hex(try rootHash(at + 1, readerOf(leaves()))), root)
        }
    }

    func testInclusionProofsLeadToTheirRootsOneOf22HashesToo() throws {
        let computed = try vectors().get("computed_here").list("inclusion")
        for example in computed + [try vectors().get("inclusion_real_ct_leaf")] {
            if let leaf = example.textOrNil("leaf_data") {
                XCTAssertEqual(hex(hashLeaf(try fromHex(leaf))), try example.text("leaf_hash"))
            }
            let path = try example.texts("proof").map { try fromHex($0) }
            let root = try rootFromPath(
                leaf: example.hex("leaf_hash"), index: example.number("index"), treeSize: example.number("size"), path: path)
            XCTAssertEqual(hex(root), try example.text("root"))
        }
    }

    func testConsistencyProofsComeOutAndVerify() throws {
        for example in try vectors().list("consistency") + vectors().get("computed_here").list("consistency") {
            let oldSize = try example.number("size1")
            let newSize = try example.number("size2")
            let proof = try proveConsistency(oldSize, newSize, readerOf(leaves()))
            XCTAssertEqual(proof.map(hex), try example.texts("proof"))
            let claim = ConsistencyClaim(
                oldSize: oldSize, oldRoot: try example.hex("root1"), newSize: newSize, newRoot: try example.hex("root2"),
                proof: proof)
            try verifyConsistency(claim)
        }
    }
}

final class TransparencyDevTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("merkle-transparency-dev") }

    private func hashes(_ example: JSONValue) throws -> [[UInt8]] { try example.texts("proof").map { try fromBase64($0) } }

    /// Some are above 2^63: beyond every tree, as -1 is.
    private func unsigned(_ example: JSONValue, _ name: String) throws -> Int { try example.get(name).int ?? -1 }

    func testThe98InclusionProbesAreJudgedAsTheyAreThere() throws {
        let probes = try vectors().list("inclusion")
        XCTAssertEqual(probes.count, 98)
        for example in probes {
            let claim = InclusionClaim(
                leafHash: try example.octets("leafHash"), index: try unsigned(example, "leafIdx"),
                treeSize: try unsigned(example, "treeSize"), path: try hashes(example), rootHash: try example.octets("root"))
            let expected: LogError.Code? = try example.flag("wantErr") ? .proofInvalid : nil
            let file = try example.text("file")
            XCTAssertEqual(logErrorCode { try verifyInclusion(claim) }, expected, file)
        }
    }

    func testThe98ConsistencyProbesAreJudgedAsTheyAreThere() throws {
        let probes = try vectors().list("consistency")
        XCTAssertEqual(probes.count, 98)
        for example in probes {
            let claim = ConsistencyClaim(
                oldSize: try unsigned(example, "size1"), oldRoot: try example.octets("root1"),
                newSize: try unsigned(example, "size2"), newRoot: try example.octets("root2"), proof: try hashes(example))
            let expected: LogError.Code? = try example.flag("wantErr") ? .proofInvalid : nil
            let file = try example.text("file")
            XCTAssertEqual(logErrorCode { try verifyConsistency(claim) }, expected, file)
        }
    }
}

final class ForkTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("consistency-forks") }

    private func sizeOf(_ branch: String) throws -> Int {
        try known(Int(branch.prefix { "0123456789".contains($0) }), branch)
    }

    func testEveryCheckpointOpensAndHasTheRootOfItsBranch() throws {
        let vectors = try vectors()
        let verifiers = [try parseVerifierKey(vectors.text("log_vkey"))]
        for (branch, note) in try known(vectors.get("checkpoints").object, "checkpoints") {
            let checkpoint = try parseCheckpoint(openNote(known(note.string, branch), verifiers).text)
            XCTAssertEqual(checkpoint.treeSize, try sizeOf(branch))
            XCTAssertEqual(checkpoint.rootHash, try vectors.get("roots_base64").base64(branch))
        }
    }

    func testAProofWithinABranchHoldsOneAcrossBranchesDoesNot() throws {
        let vectors = try vectors()
        let roots = try vectors.get("roots_base64")
        for example in vectors.list("consistency") {
            let first = try example.text("first")
            let second = try example.text("second")
            let claim = ConsistencyClaim(
                oldSize: try sizeOf(first), oldRoot: try roots.base64(first), newSize: try sizeOf(second),
                newRoot: try roots.base64(second), proof: try example.texts("proof").map { try fromBase64($0) })
            XCTAssertEqual(logErrorCode { try verifyConsistency(claim) } == nil, try example.flag("ok"), "\(first) to \(second)")
        }
        XCTAssert(try vectors.list("consistency").contains { try !$0.flag("ok") })
    }
}

final class GoldenLogTests: XCTestCase {
    private func golden() throws -> JSONValue { try readVectors("tessera-golden-log") }

    private func heads() throws -> [SignedCheckpoint] {
        let verifiers = [try parseVerifierKey(golden().text("vkey"))]
        return try golden().texts("checkpoints").map { note in
            let checkpoint = try parseCheckpoint(openNote(note, verifiers).text)
            return SignedCheckpoint(
                origin: checkpoint.origin, treeSize: checkpoint.treeSize, rootHash: encodeBase64(checkpoint.rootHash), note: note)
        }
    }

    func testTheCheckpointsOfEverySizeOpenAndHaveTheRootOfItsEntries() throws {
        let leaves = try golden().texts("leaf_hashes_base64").map { try fromBase64($0) }
        XCTAssertEqual(try golden().texts("entries_utf8").map { hashLeaf(Array($0.utf8)) }, leaves)
        for (size, head) in try heads().enumerated() {
            XCTAssertEqual(head.treeSize, size)
            XCTAssertEqual(head.rootHash, encodeBase64(try naiveRoot(leaves.prefix(size))))
        }
    }

    func testEachOfItsTreesIsFoundToBeginWithEveryEarlierOneByItsTiles() async throws {
        let tiles = try golden().get("resources")
        let heads = try heads()
        for older in heads {
            for newer in heads.dropFirst(older.treeSize) {
                let found = try await consistencyFromTiles(
                    { try tiles.hex("/\(formatTilePath($0))") }, older: older, newer: newer)
                XCTAssertEqual(found, .consistent, "\(older.treeSize) to \(newer.treeSize)")
            }
        }
    }

    func testAnotherOldRootIsRewrittenHistoryAndAnotherTileShowsNothing() async throws {
        let tiles = try golden().get("resources")
        let heads = try heads()
        let (older, newer) = (heads[3], heads[5])
        let other = SignedCheckpoint(
            origin: older.origin, treeSize: 3, rootHash: encodeBase64([UInt8](repeating: 1, count: 32)), note: "")
        let rewritten = try await consistencyFromTiles({ try tiles.hex("/\(formatTilePath($0))") }, older: other, newer: newer)
        let detail = "the tree of size 5 does not begin with that of size 3"
        XCTAssertEqual(rewritten, .inconsistent(check: .consistency, detail: detail))
        let zeros = try await consistencyFromTiles(
            { [UInt8](repeating: 0, count: 32 * $0.width) }, older: older, newer: newer)
        XCTAssertEqual(zeros, .inconsistent(check: .tiles, detail: "the tiles do not lead to the root of size 5"))
        let short = try await consistencyFromTiles({ _ in [] }, older: older, newer: newer)
        let none = "tile 0 of level 0 has 0 octets instead of 5 hashes"
        XCTAssertEqual(short, .inconsistent(check: .tiles, detail: none))
    }
}

final class DerivedLogTests: XCTestCase {
    private func log() throws -> JSONValue { try readVectors("derived-kt-e2e") }

    func testItsEntriesHaveTheirLeafHashesAndItsConsistencyProofsComeOut() throws {
        let log = try log()
        let leaves = try log.list("entries").map { entry in
            let octets = try formatEntry(vrfHash: entry.base64("vrfHash"), publicKey: entry.text("publicKey"))
            XCTAssertEqual(octets.count, try log.number("entry_bytes_length"))
            XCTAssertEqual(encodeBase64(hashLeaf(octets)), try entry.text("leaf_hash_base64"))
            return hashLeaf(octets)
        }
        for example in log.list("consistency") {
            let proof = try proveConsistency(example.number("first"), example.number("second"), readerOf(leaves))
            XCTAssertEqual(proof.map(encodeBase64), try example.texts("proof_base64"))
        }
    }

    func testItsCheckpointsVerifyOneWithTheCosignaturesOfItsWitnesses() throws {
        let log = try log()
        let (vkey, vrfKey) = (try log.text("log_vkey"), try log.text("vrf_pk_base64"))
        let keys = try LogKeys.ofVerifierKey(vkey, vrfPublicKey: vrfKey)
        for (size, note) in try known(log.get("checkpoints").object, "checkpoints") {
            guard case .holds(let verified) = verifyCheckpoint(keys, try known(note.string, size)) else { return XCTFail(size) }
            XCTAssertEqual("\(verified.checkpoint.treeSize)", size)
        }
        let witnesses = log.list("witnesses")
        let lines = try witnesses.enumerated().map { "witness w\($0) \(try $1.text("cosignature_vkey"))\n" }.joined()
        let names = witnesses.indices.map { "w\($0)" }.joined(separator: " ")
        let policy = "log \(vkey)\n\(lines)group all-of all \(names)\nquorum all-of\n"
        let witnessed = try LogKeys.ofPolicy(policy, vrfPublicKey: vrfKey)
        let note = try log.text("cosigned_checkpoint")
        let atMs = 1_000 * (try known(try witnesses.map { try $0.number("time") }.min(), "witnesses"))
        XCTAssertEqual(verifyWitnesses(witnessed, note, nowMs: 0), .holds(Witnessed(atMs: atMs)))
        XCTAssertEqual(verifyWitnesses(witnessed, note, nowMs: atMs + 1_000, maxAgeMs: 1_000), .holds(Witnessed(atMs: atMs)))
        guard case .refused(let old) = verifyWitnesses(witnessed, note, nowMs: atMs + 1_001, maxAgeMs: 1_000) else {
            return XCTFail("not stale")
        }
        XCTAssertEqual(old.check, .stale)
    }

    func testItsLookupResultsVerify() throws {
        let log = try log()
        let keys = try LogKeys.ofVerifierKey(log.text("log_vkey"), vrfPublicKey: log.text("vrf_pk_base64"))
        let entries = log.list("entries")
        let proofs = log.list("tlog_proofs")
        XCTAssertGreaterThanOrEqual(proofs.count, 13)
        for example in proofs {
            let index = try example.number("index")
            let entry = entries[index]
            let (publicKey, vrfHash) = (try entry.text("publicKey"), try entry.text("vrfHash"))
            let userId = try known(uint64(entry.text("userID")), "userID")
            let deviceId = try known(uint64(entry.text("deviceID")), "deviceID")
            let claim = LookupClaim(userId: userId, deviceId: deviceId, vrfHash: vrfHash, publicKey: publicKey)
            let result = LookupResult(publicKey: publicKey, vrfHash: vrfHash, proof: try example.text("proof"))
            guard case .holds(let verified) = verifyLookup(keys, claim, result) else { return XCTFail("entry \(index)") }
            XCTAssertEqual(verified.index, index)
            XCTAssertEqual(verified.checkpoint.treeSize, try example.number("size"))
        }
    }

    func testTwoRootsOfOneSizeAreAForkAndOtherSizesAreCompared() throws {
        func checkpoint(_ treeSize: Int, _ rootHash: String, _ origin: String = "log") -> SignedCheckpoint {
            SignedCheckpoint(origin: origin, treeSize: treeSize, rootHash: rootHash, note: "\(treeSize) \(rootHash)")
        }
        XCTAssertEqual(compareCheckpoints(known: checkpoint(2, "a"), seen: checkpoint(2, "a")), .holds(.same))
        XCTAssertEqual(compareCheckpoints(known: checkpoint(2, "a"), seen: checkpoint(1, "b")), .holds(.smaller))
        XCTAssertEqual(compareCheckpoints(known: checkpoint(2, "a"), seen: checkpoint(3, "b")), .holds(.larger))
        let evidence = Evidence(known: "2 a", seen: "2 b")
        let fork = Refusal(.fork, "tree size 2 was signed with two roots", evidence: evidence)
        XCTAssertEqual(compareCheckpoints(known: checkpoint(2, "a"), seen: checkpoint(2, "b")), .refused(fork))
        let (decomposed, composed) = (checkpoint(2, "a", "e\u{301}"), checkpoint(2, "a", "\u{e9}"))
        guard case .refused(let other) = compareCheckpoints(known: decomposed, seen: composed) else { return XCTFail("one log") }
        XCTAssertEqual(other.check, .origin)
    }
}

extension JSONValue {
    /// Octets in base64; none where there is no text.
    fileprivate func octets(_ name: String) throws -> [UInt8] { try fromBase64(textOrNil(name) ?? "") }
}
