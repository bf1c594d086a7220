import TestSupport
import XCTest

@testable import CallsignVerify

final class TlogProofTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("tlog-proof") }

    func testPublishedProofsAreRead() throws {
        for example in try vectors().list("serialize") {
            let proof = try parseProof(example.text("text"))
            XCTAssertEqual("\(proof.index)", try example.text("index"))
            XCTAssertEqual(proof.path.map(encodeBase64), try example.texts("hashes"))
            XCTAssertEqual(proof.extra.map(encodeBase64), example.textOrNil("extra_base64"))
            XCTAssertEqual(proof.checkpoint, try example.text("checkpoint"))
        }
    }

    func testPublishedRefusalsAreRefusedAndSoIsWhatOnlyGoLetsPass() throws {
        let long = "\(try vectors().text("header"))\nindex 0\n\(String(repeating: "a", count: 66_560))\n\ncheckpoint\n"
        for example in try vectors().list("parse_error") {
            let text = example.textOrNil("text") ?? long
            let id = try example.text("id")
            XCTAssertEqual(logErrorCode { _ = try parseProof(text) }, .malformed, id)
        }
        for example in try vectors().list("strictness") {
            XCTAssertEqual(try example.text("recommended"), "refuse")
            let text = try example.text("text")
            let id = try example.text("id")
            XCTAssertEqual(logErrorCode { _ = try parseProof(text) }, .malformed, id)
        }
    }

    func testNoLineOfAProofEndsInACarriageReturn() throws {
        for example in try vectors().list("serialize") {
            let octets = Array(try example.text("text").utf8)
            let end = try known(octets.indices.dropLast().first { octets[$0] == newline && octets[$0 + 1] == newline }, "end")
            for at in 0...end + 1 where octets[at] == newline {
                let text = textOf(octets[..<at] + [UInt8(ascii: "\r")] + octets[at...])
                XCTAssertEqual(logErrorCode { _ = try parseProof(text) }, .malformed)
            }
        }
    }

    func testProofsOfAnotherKeyTransparencyLogLeadFromItsEntriesToItsSignedRoot() throws {
        for example in try vectors().list("end_to_end") {
            let proof = try parseProof(example.text("proof"))
            let verifiers = [try parseVerifierKey(example.text("log_vkey"))]
            let opened = try openNote(proof.checkpoint, verifiers)
            let checkpoint = try parseCheckpoint(opened.text)
            let leafHash = hashLeaf(try example.hex("entry_hex"))
            XCTAssertEqual(encodeBase64(leafHash), try example.text("leaf_hash_base64"))
            XCTAssertEqual(proof.index, try example.number("index"))
            XCTAssertEqual(opened.unverified.count, try example.text("id").contains("three") ? 3 : 0)
            func claim(_ index: Int) -> InclusionClaim {
                InclusionClaim(
                    leafHash: leafHash, index: index, treeSize: checkpoint.treeSize, path: proof.path,
                    rootHash: checkpoint.rootHash)
            }
            try verifyInclusion(claim(proof.index))
            // Changed in one place each, the proof holds for nothing.
            for index in [proof.index - 1, proof.index + 1] {
                XCTAssertEqual(logErrorCode { try verifyInclusion(claim(index)) }, .proofInvalid)
            }
            var renamed = proof.checkpoint
            renamed.replaceSubrange(try known(renamed.range(of: "test."), "test."), with: "tesu.")
            XCTAssertEqual(logErrorCode { _ = try openNote(renamed, verifiers) }, .signatureInvalid)
        }
    }
}

final class TileTests: XCTestCase {
    private func vectors() throws -> JSONValue { try readVectors("tiles") }

    func testPublishedPathsAreWritten() throws {
        for example in try vectors().list("paths") where try example.text("kind") == "hash" {
            let width = try example.number("width")
            let tile = Tile(
                level: try example.number("level"), index: try example.number("index"), width: width == 0 ? tileWidth : width)
            XCTAssertEqual(try formatTilePath(tile), try example.text("path"))
        }
        for (level, index, width) in [(64, 0, 1), (-1, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, 257), (0, safeMax + 1, 1)] {
            let tile = Tile(level: level, index: index, width: width)
            XCTAssertEqual(logErrorCode { _ = try formatTilePath(tile) }, .malformed, "\(tile)")
        }
    }

    func testTilesHaveTheirPublishedWidthsInATree() throws {
        for example in try vectors().get("tiles_for_size").list("cases") {
            let size = try example.number("size")
            for level in example.list("levels") {
                let number = try level.number("level")
                let full = try level.number("full")
                func width(_ index: Int) -> Int { widthOfTile(level: number, index: index, treeSize: size) }
                if full > 0 { XCTAssertEqual(width(full - 1), tileWidth) }
                XCTAssertEqual(width(full), try level.number("partial_width"), "level \(number) of \(size)")
                XCTAssertEqual(width(full + 1), 0)
            }
        }
    }

    func testNodesAreInTheirPublishedTiles() throws {
        for example in try vectors().get("node_to_tile").list("cases") {
            let node = Node(level: try example.number("tree_level"), index: try example.number("tree_index"))
            let range = tileOfNode(node)
            XCTAssertEqual(range.level, try example.number("tile_level"))
            XCTAssertEqual(range.index, try example.number("tile_index"))
            let covered = 1 << (try example.number("node_level"))
            XCTAssertEqual(range.positions.count, covered)
            XCTAssertEqual(range.positions.lowerBound, try example.number("node_index") * covered)
        }
    }

    func testABundleIsReadWhollyOrNotAtAll() throws {
        let entries: [[UInt8]] = [[], [1], [2, 3], [UInt8](repeating: 4, count: 65_535)]
        let bundle = entries.flatMap { bigEndianOctets(UInt64($0.count), count: 2) + $0 }
        XCTAssertEqual(try parseBundle(bundle), entries)
        XCTAssertEqual(try parseBundle([]), [])
        for length in [1, 3, 4, 8, bundle.count - 1] {
            XCTAssertEqual(logErrorCode { _ = try parseBundle(Array(bundle[..<length])) }, .malformed, "\(length)")
        }
        XCTAssertEqual(try parseBundle([UInt8](repeating: 0, count: 512)).count, 256)
        XCTAssertEqual(logErrorCode { _ = try parseBundle([UInt8](repeating: 0, count: 514)) }, .malformed)
    }
}
