import Foundation
import TestSupport
import XCTest

@testable import CallsignVerify

/// Both implementations give one verdict, with one name of the check, on each case of a corpus that
/// `test/support/verdict-corpus.ts` makes: broken proofs, notes, lists and histories, and sound ones.
final class VerdictCorpusTests: XCTestCase {
    func testTheFrozenCorpusHasTheVerdictsOfTheTypeScriptClient() async throws {
        let judged = try await differencesIn(projectRoot.appendingPathComponent("test/vectors/client-verdicts.jsonl"))
        judged.assertNoDifferences()
        XCTAssertGreaterThanOrEqual(judged.cases, 2_000)
    }

    /// Made by `node dist/test/support/verdict-corpus.js`.
    func testACorpusThatTheEnvironmentNamesHasThemToo() async throws {
        guard let path = ProcessInfo.processInfo.environment["CALLSIGN_CORPUS"] else {
            throw XCTSkip("CALLSIGN_CORPUS names no file")
        }
        let judged = try await differencesIn(URL(fileURLWithPath: path))
        judged.assertNoDifferences()
        print("CallsignVerify: \(judged.cases) cases of seed \(judged.seed) judged alike")
    }
}

private struct Judged {
    var seed = ""
    var cases = 0
    var differences: [String] = []

    func assertNoDifferences() {
        XCTAssertEqual([], Array(differences.prefix(20)), "\(differences.count) differences of \(cases) cases, seed \(seed)")
    }
}

private func differencesIn(_ file: URL) async throws -> Judged {
    var bases: [String: JSONValue] = [:]
    var judge = Judge(keys: [:])
    var judged = Judged()
    for text in try Data(contentsOf: file).split(separator: 0x0a) {
        let line = try known(JSONValue(octets: [UInt8](text), half: "\0"), file.path)
        if let keys = line.find("keys")?.object {
            judged.seed = try line.get("seed").text
            judge = Judge(keys: try keys.mapValues(keysOf))
            continue
        }
        let kind = try line.text("kind")
        guard let verdict = line.textOrNil("verdict") else {
            bases["\(kind) \(try line.text("name"))"] = try line.get("value")
            continue
        }
        judged.cases += 1
        let base = try known(bases["\(kind) \(try line.text("base"))"], kind)
        let own = try await judge.verdictOn(kind, try edited(base, line.list("edits")))
        if own != verdict {
            judged.differences.append("\(own), not \(verdict), of \(String(decoding: text, as: UTF8.self))")
        }
    }
    return judged
}

func keysOf(_ published: JSONValue) throws -> LogKeys {
    let vrfPublicKey = try published.text("vrfPublicKey")
    if let policy = published.textOrNil("policy") { return try LogKeys.ofPolicy(policy, vrfPublicKey: vrfPublicKey) }
    return try LogKeys.ofVerifierKey(
        published.text("vkey"), vrfPublicKey: vrfPublicKey, indexVkey: published.textOrNil("indexVkey"))
}

/// The counterpart of `test/support/verdict-judges.ts`.
private struct Judge {
    let keys: [String: LogKeys]

    func verdictOn(_ kind: String, _ value: JSONValue) async throws -> String {
        switch kind {
        case "lookup": try lookup(value)
        case "history": try history(value)
        case "checkpoint": try checkpoint(value)
        case "witnesses": try witnesses(value)
        case "comparison": try comparison(value)
        case "list": try list(value)
        case "ed25519": try signature(value, ed25519Verify)
        case "p256": try signature(value, p256Verify)
        case "keys": try codeNameOf { _ = try keysOf(value) }
        case "consistency": try consistency(value)
        case "tiles": try await tiles(value)
        case "index": try indexVerdictOn(keysIn(value), value)
        case "share": try share(value)
        case "callKey": try callKey(value)
        case "code": try result { try comparisonCode(personIn(value.get("one")), personIn(value)) }
        default: throw VectorError(name: kind)
        }
    }

    private func keysIn(_ value: JSONValue) throws -> LogKeys { try known(keys[try value.text("keys")], "keys") }

    private func lookup(_ value: JSONValue) throws -> String {
        let claim = try value.get("claim")
        guard let userId = uint64(try claim.text("userId")), let deviceId = uint64(try claim.text("deviceId")) else {
            return "no id"
        }
        let asked = LookupClaim(
            userId: userId,
            deviceId: deviceId,
            vrfHash: claim.textOrNil("vrfHash"),
            publicKey: claim.textOrNil("publicKey")
        )
        switch verifyLookup(try keysIn(value), asked, json: value.find("result")) {
        case .holds(let found): return "verified \(found.index) of \(found.checkpoint.treeSize)"
        case .refused(let refusal): return refusal.check.rawValue
        }
    }

    private func history(_ value: JSONValue) throws -> String {
        let claim = try value.get("claim")
        guard let userId = uint64(try claim.text("userId")), let deviceId = uint64(try claim.text("deviceId")) else {
            return "no id"
        }
        let asked = HistoryClaim(userId: userId, deviceId: deviceId, vrfHash: try claim.text("vrfHash"))
        switch verifyKeyHistory(try keysIn(value), asked, json: value.find("history")) {
        case .holds(let found): return "verified \(found.entries.map { "\($0.index)" }.joined(separator: " "))"
        case .refused(let refusal): return refusal.check.rawValue
        }
    }

    private func checkpoint(_ value: JSONValue) throws -> String {
        switch verifyCheckpoint(try keysIn(value), try value.text("note")) {
        case .holds(let found): "verified \(found.checkpoint.treeSize) \(found.checkpoint.rootHash)"
        case .refused(let refusal): refusal.check.rawValue
        }
    }

    private func witnesses(_ value: JSONValue) throws -> String {
        let (nowMs, maxAgeMs) = (try value.number("nowMs"), try value.number("maxAgeMs"))
        switch verifyWitnesses(try keysIn(value), try value.text("note"), nowMs: nowMs, maxAgeMs: maxAgeMs) {
        case .holds(let witnessed): return "witnessed \(witnessed.atMs.map { "\($0)" } ?? "by none")"
        case .refused(let refusal): return refusal.check.rawValue
        }
    }

    private func comparison(_ value: JSONValue) throws -> String {
        let keys = try keysIn(value)
        guard case .holds(let known) = verifyCheckpoint(keys, try value.text("known")),
            case .holds(let seen) = verifyCheckpoint(keys, try value.text("seen"))
        else { return "not two checkpoints" }
        switch compareCheckpoints(known: known.checkpoint, seen: seen.checkpoint) {
        case .holds(let comparison): return "\(comparison)"
        case .refused(let refusal): return refusal.check.rawValue
        }
    }

    private func list(_ value: JSONValue) throws -> String {
        let userId = try known(uint64(try value.text("userId")), "userId")
        let previous = try value.textOrNil("previous").map(fromHex)
        switch try judgeDeviceList(userId: userId, previous: previous, next: value.hex("next")) {
        case .taken(let kind, _): return kind.rawValue
        case .refused(let reason, _): return reason.rawValue
        }
    }

    private func signature(_ value: JSONValue, _ verify: ([UInt8], [UInt8], [UInt8]) -> Bool) throws -> String {
        let holds = verify(try value.hex("publicKey"), try value.hex("message"), try value.hex("signature"))
        return holds ? "holds" : "does not hold"
    }

    private func consistency(_ value: JSONValue) throws -> String {
        let (oldRoot, newRoot, proof) = (try value.text("oldRoot"), try value.text("newRoot"), try value.texts("proof"))
        let (oldSize, newSize) = (try value.number("oldSize"), try value.number("newSize"))
        return try codeNameOf {
            let claim = ConsistencyClaim(
                oldSize: oldSize,
                oldRoot: try decodeBase64(oldRoot),
                newSize: newSize,
                newRoot: try decodeBase64(newRoot),
                proof: try proof.map { try decodeBase64($0) }
            )
            try verifyConsistency(claim)
        }
    }

    private func tiles(_ value: JSONValue) async throws -> String {
        let served = try value.get("tiles")
        do {
            let heads = try ["older", "newer"].map { name in
                let head = try value.get(name)
                _ = try decodeBase64(head.text("rootHash"))
                return SignedCheckpoint(
                    origin: "", treeSize: try head.number("treeSize"), rootHash: try head.text("rootHash"), note: "")
            }
            let fetchTile: FetchTile = { tile in try fromHex(served.textOrNil(try formatTilePath(tile)) ?? "") }
            switch try await consistencyFromTiles(fetchTile, older: heads[0], newer: heads[1]) {
            case .consistent: return "consistent"
            case .inconsistent(let check, _): return check.rawValue
            }
        } catch let error as LogError {
            return error.code.rawValue
        }
    }

    private func share(_ value: JSONValue) throws -> String {
        let (fragment, origin) = (try value.text("fragment"), try value.text("origin"))
        return try result {
            guard let shared = try readShareFragment(fragment, origin: origin) else { return "nothing" }
            let index = shared.indexNote.map { " \($0)" } ?? ""
            return "\(shared.person.userId) \(shared.person.listHash) \(shared.note ?? "-")\(index)"
        }
    }

    private func callKey(_ value: JSONValue) throws -> String {
        let (opened, origin) = (try value.hex("opened"), try value.text("origin"))
        return try result {
            let read = try readCallKey(opened, origin: origin)
            let content = read.content
            return "\(hex(content.callKey)) \(hex(content.setHash)) \(content.sealedAtMs) \(read.note ?? "-")"
        }
    }

    private func personIn(_ value: JSONValue) throws -> ListedPerson {
        ListedPerson(userId: try known(uint64(try value.text("userId")), "userId"), listHash: try value.text("listHash"))
    }

    private func codeNameOf(_ act: () throws -> Void) throws -> String {
        try result {
            try act()
            return "none"
        }
    }

    private func result(_ act: () throws -> String) throws -> String {
        do {
            return try act()
        } catch let error as LogError {
            return error.code.rawValue
        }
    }
}
