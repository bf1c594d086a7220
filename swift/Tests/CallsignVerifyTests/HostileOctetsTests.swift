import CallsignCrypto
import Foundation
import TestSupport
import XCTest

@testable import CallsignVerify

/// No octets of a stranger end the process. Every text of the vectors is damaged at random and given to everything that reads or
/// verifies one. `CALLSIGN_DAMAGES` says how many times, where the environment has it, and `CALLSIGN_DAMAGE_SEED` how they begin.
final class HostileOctetsTests: XCTestCase {
    func testNoDamagedTextTraps() async throws {
        let hostile = try Hostile()
        var damage = Damage(seed: number("CALLSIGN_DAMAGE_SEED", 53), texts: hostile.texts)
        for at in 0..<number("CALLSIGN_DAMAGES", 300) {
            let octets = damage.octets()
            hostile.read(octets, &damage)
            hostile.verify(octets, &damage)
            hostile.verifyJSON(damage.damagedJSON(hostile.values), &damage)
            if at % 16 == 0 { try await hostile.answer(octets, damage.damagedJSON(hostile.values)) }
        }
    }

    func testNoNumbersTrap() throws {
        let hostile = try Hostile()
        var damage = Damage(seed: 54, texts: hostile.texts)
        for _ in 0..<number("CALLSIGN_DAMAGES", 300) { try hostile.count(&damage) }
    }

    private func number(_ name: String, _ usual: UInt64) -> UInt64 {
        ProcessInfo.processInfo.environment[name].flatMap(UInt64.init) ?? usual
    }
}

/// SplitMix64.
private struct Damage: RandomNumberGenerator {
    private var state: UInt64
    private let texts: [[UInt8]]

    init(seed: UInt64, texts: [[UInt8]]) {
        state = seed
        self.texts = texts
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
        return word ^ (word >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<max(bound, 1), using: &self) }

    /// One of the texts, damaged in up to three places.
    mutating func octets() -> [UInt8] {
        var octets = texts[below(texts.count)]
        for _ in 0..<below(4) { damage(&octets) }
        return octets
    }

    mutating func damage(_ octets: inout [UInt8]) {
        let at = below(octets.count + 1)
        let end = min(octets.count, at + 1 + (below(4) == 0 ? below(octets.count) : below(4)))
        switch below(8) {
        case 0: if at < octets.count { octets[at] ^= 1 << UInt8(below(8)) }
        case 1: if at < octets.count { octets[at] = UInt8(below(256)) }
        case 2: octets.removeSubrange(at..<end)
        case 3: octets.insert(contentsOf: octets[at..<end], at: below(octets.count + 1))
        case 4: octets.insert(contentsOf: texts[below(texts.count)].prefix(below(80)), at: at)
        case 5: octets = Array(octets[..<at])
        default: octets.replaceSubrange(below(2) == 0 ? at..<at : at..<end, with: oddities[below(oddities.count)].utf8)
        }
    }

    /// A number at one of the bounds, or near one.
    mutating func oddNumber() -> Int {
        switch below(4) {
        case 0: [Int.min, .max, 0, -1, 1, safeMax, safeMax + 1, 255, 256, 1 << 52, 1 << 62][below(11)] &+ below(3) &- 1
        case 1: Int(truncatingIfNeeded: next())
        case 2: Int(next() >> 11)
        default: below(300)
        }
    }

    /// One of the values, with a part of it damaged or replaced.
    mutating func damagedJSON(_ values: [JSONValue]) -> JSONValue { damaged(values[below(values.count)]) }

    private mutating func damaged(_ value: JSONValue) -> JSONValue {
        if below(24) == 0 { return JSONValue(octets: octets(), half: "\0") ?? .null }
        switch value {
        case .object(var members):
            guard let name = members.keys.sorted().randomElement(using: &self) else { return value }
            members[name] = below(16) == 0 ? nil : members[name].map { damaged($0) }
            return .object(members)
        case .array(var values):
            guard !values.isEmpty else { return .array([.null]) }
            let at = below(values.count)
            if below(8) == 0 { values.remove(at: at) } else { values[at] = damaged(values[at]) }
            return .array(values)
        case .string(let text):
            var octets = Array(text.utf8)
            damage(&octets)
            return .string(String(decoding: octets, as: UTF8.self))
        case .number: return .number(["-0", "1e2", "1E400", "1e-400", "0.5", "9007199254740992", "-1", "7"][below(8)])
        case .bool, .null: return [.null, .bool(true), [], [:], "", 0][below(6)]
        }
    }
}

private let oddities = [
    "", "\n", "\n\n", "\r\n", "\0", "\u{85}", "\u{2028}", "\u{feff}", "\u{fffd}", "\u{301}", "\u{212a}", "\u{37e}", "\u{200d}",
    "\u{10ffff}", "e\u{301}", "\u{e9}", "\u{661}", "\u{ff11}", "-1", "+1", "01", "1e3", "9007199254740991", "9007199254740992",
    "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "\\ud800", "\\udc00", "\\u0000",
    "=", "==", "====", "+", "/", "-", "_", "#", "&", "u=", "l=", "n=", "i=", "\u{2014} ", "{", "[", "]", "}", "\"", "\\", ",", ":",
    "null", "true", "index ", "extra ", " ",
]

private struct Hostile {
    var texts: [[UInt8]] = []
    var values: [JSONValue] = []
    private var keys: [LogKeys] = []
    private var lists: [[UInt8]] = []

    init() throws {
        var seen: Set<[UInt8]> = []
        let names = [
            "call-key-checkpoint", "checkpoint", "cosignature", "derived-kt-e2e", "derived-vrf-r255", "device-list", "index-lookups",
            "mpt-verify", "ristretto255", "signed-note", "signing-messages", "tessera-golden-log", "tlog-proof", "vrf-r255",
            "witness-add-checkpoint", "witness-policy", "call-key-rsa",
        ]
        for name in names { collect(try readVectors(name), &seen) }
        for name in ["client-verdicts", "client-stories", "client-index"] {
            for line in try readLines(name).prefix(name == "client-verdicts" ? .max : 3) {
                if let published = line.find("keys")?.object, keys.isEmpty {
                    keys = try published.sorted { $0.key < $1.key }.map { try keysOf($0.value) }
                }
                if let value = line.find("value") {
                    values.append(value)
                    if line.textOrNil("kind") == "list" { lists.append(try value.hex("next")) }
                }
                if line.find("edits") == nil { collect(line, &seen) }
            }
        }
        // Sets have another order in each process.
        texts = seen.filter { $0.count <= 8_192 }.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// All texts in the value, the octets that they spell, and the value itself.
    private func collect(_ value: JSONValue, _ seen: inout Set<[UInt8]>) {
        switch value {
        case .object(let members):
            seen.insert(Array(value.text.utf8))
            for member in members.values { collect(member, &seen) }
        case .array(let values): for each in values { collect(each, &seen) }
        case .string(let text):
            seen.insert(Array(text.utf8))
            if let octets = base64Octets(text) { seen.insert(octets) }
            if text.utf8.count % 2 == 0, text.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let octets = try? fromHex(text)
            {
                seen.insert(octets)
                seen.insert(Array(encodeBase64(octets).utf8))
            }
        case .number, .bool, .null: break
        }
    }

    /// Everything that reads one text, or the octets of one.
    func read(_ octets: [UInt8], _ damage: inout Damage) {
        let text = String(decoding: octets, as: UTF8.self)
        if let value = JSONValue(octets: octets, half: "\0") { XCTAssertEqual(JSONValue(octets: Array(value.text.utf8)), value) }
        _ = (JSONValue(text), try? decodeUTF8(octets), base64Octets(text), uint64(text), try? parseDecimal(text))
        _ = (try? openNote(octets: octets, keys[0].verifiers), try? readNote(text), try? parseCheckpoint(text))
        _ = (try? parseVerifierKey(text), try? parseWitnessKey(text), try? parsePolicy(text), try? parseVrfPublicKey(text))
        _ = (try? parseProof(text), try? parseBundle(octets), try? parseIndexLeaf(octets), try? parseDeviceList(octets))
        _ = (try? formatEntry(vrfHash: octets, publicKey: text), indexKeyOf(text), hasHighS(octets), try? withLowS(octets))
        _ = (readPackedCheckpoint(octets, origin: text), try? readCallKey(octets, origin: text))
        _ = (try? readShareFragment(text, origin: "log.example/kt"), try? parseKeptCheckpoint(text), try? parseKnownUser(text))
        _ = try? packCheckpoint(
            SignedCheckpoint(origin: "log.example/kt", treeSize: damage.oddNumber(), rootHash: text, note: text))
        let person = ListedPerson(userId: damage.next(), listHash: text)
        _ = (try? comparisonCode(person, person), try? shareFragment(person))
        _ = (try? possessionMessage(octets), try? signInMessage(octets))
        _ = (isKeyName(text), isNoteText(octets), firstLine(of: text), quotable(text, scalars: 5), linesOf(octets))
    }

    /// Everything that verifies one.
    func verify(_ octets: [UInt8], _ damage: inout Damage) {
        let text = String(decoding: octets, as: UTF8.self)
        let other = damage.octets()
        let log = keys[damage.below(keys.count)]
        let nowMs = damage.below(2) == 0 ? 1_790_000_000_000 : 0
        _ = (verifyCheckpoint(log, text), verifyWitnesses(log, text, nowMs: nowMs, maxAgeMs: damage.below(1_000)))
        _ = try? verifyVrf(publicKey: Array(octets.prefix(32)), input: other, proof: Array(octets.prefix(80)))
        _ = try? verifyVrf(publicKey: log.vrfPublicKey, input: other, proof: octets)
        _ = ed25519Verify(publicKey: Array(octets.prefix(32)), message: other, signature: Array(octets.suffix(64)))
        _ = p256Verify(publicKey: Array(octets.prefix(65)), message: other, signature: Array(octets.suffix(64)))
        _ = isSigningKey(octets)
        for list in [lists[damage.below(lists.count)], octets] {
            var next = list
            damage.damage(&next)
            _ = try? judgeDeviceList(userId: 1, previous: damage.below(2) == 0 ? nil : list, next: next)
        }
        let claim = PatriciaClaim(
            root: emptyRoot, key: Array(octets.prefix(32)), value: damage.below(2) == 0 ? nil : other, proof: octets)
        _ = try? verifyPatricia(claim)
        let node = Node(level: damage.below(64), index: damage.below(1_000))
        _ = try? hashInTile(octets, node)
        _ = (platform.isP256Point(octets), try? platform.rsaEncrypt(spki: octets, Array(other.prefix(300))))
        _ = try? platform.p256Agree(key: Array(octets.prefix(32)), point: other)
        _ = platform.p256Verify(point: other, octets, signature: Array(octets.suffix(64)))
        _ = try? platform.openGCM(
            key: Array(octets.prefix(16)), nonce: Array(octets.suffix(12)), other, authenticating: octets)
    }

    /// Everything that verifies a stranger's JSON.
    func verifyJSON(_ value: JSONValue, _ damage: inout Damage) {
        let log = keys[damage.below(keys.count)]
        let vrfHash = value.textOrNil("vrfHash") ?? value["claim"]?["vrfHash"]?.string ?? ""
        _ = verifyLookup(log, LookupClaim(userId: 1, deviceId: 1, vrfHash: vrfHash), json: value["result"] ?? value)
        let claim = HistoryClaim(userId: 1, deviceId: 1, vrfHash: vrfHash)
        _ = verifyKeyHistory(log, claim, json: value["history"] ?? value)
        for log in keys {
            guard let index = log.index else { continue }
            _ = try? verifyIndex(
                log, index, vrfHash: vrfHash, proof: value["proof"] ?? value, nowMs: damage.oddNumber() >> 4, maxAgeMs: 1_000)
        }
    }

    /// A log's server that answers so, and an app's server that names people so.
    func answer(_ octets: [UInt8], _ value: JSONValue) async throws {
        let bodies = [octets, Array(value.text.utf8), Array(#"{"results":["#.utf8) + Array(value.text.utf8) + Array("]}".utf8)]
        for (at, body) in bodies.enumerated() {
            let transport = SameAnswer(answer: LogAnswer(status: octets.count % 5 == 0 ? 404 : 200, body: body))
            let log = keys[(octets.count + at) % keys.count]
            let client = try LogClient(
                keys: log, url: "https://log.example", store: MemoryCheckpointStore(), transport: transport,
                nowMs: { 1_790_000_000_000 })
            let text = String(decoding: octets, as: UTF8.self)
            let device = OwnDevice(userId: 1, deviceId: 1, vrfHash: text, publicKeys: [text])
            _ = try await client.checkOwnKeys(device)
            _ = try await client.refreshCheckpoint()
            _ = try await client.compareWith(text)
            let absent = AbsentList(vrfHash: text, vrfProof: text, indexProof: value.text)
            _ = try await client.verifyAbsence(userId: 1, deviceId: 0, absent: absent)
            let contacts = ContactDevices(lookups: client, store: MemoryKnownUserStore()) { _, _ in [text] }
            let named = NamedDevice(deviceId: text, keyAlgorithm: text, publicKey: text, publicKeyHash: text)
            let list = encodeBase64(lists[octets.count % lists.count])
            for deviceList in [text, list, nil] {
                let user = NamedUser(
                    userId: "1", devices: [named, named], deviceList: deviceList, deviceListHash: deviceList.map { _ in text },
                    absent: absent)
                _ = try? await contacts.verify(user)
                _ = try? await contacts.verifyShared(user, ListedPerson(userId: 1, listHash: text))
            }
        }
    }

    /// Sizes, indexes and times of any size.
    func count(_ damage: inout Damage) throws {
        let (one, other) = (damage.oddNumber(), damage.oddNumber())
        let hashes = (0..<damage.below(66)).map { [UInt8](repeating: UInt8($0), count: 32) }
        let inclusion = InclusionClaim(leafHash: emptyRoot, index: one, treeSize: other, path: hashes, rootHash: emptyRoot)
        XCTAssertThrowsError(try verifyInclusion(inclusion))
        _ = try? verifyConsistency(
            ConsistencyClaim(oldSize: one, oldRoot: emptyRoot, newSize: other, newRoot: emptyRoot, proof: hashes))
        _ = (try? rootNodes(one), try? consistencyNodes(one, other))
        let read: ReadHashes = { nodes in nodes.map { _ in emptyRoot } }
        _ = (try? proveConsistency(one, other, read), try? rootHash(one, read))
        _ = try? formatTilePath(Tile(level: one, index: other, width: damage.oddNumber()))
        let kept = KeptCheckpoint(
            checkpoint: SignedCheckpoint(origin: "", treeSize: one, rootHash: "", note: ""), openSinceMs: other)
        XCTAssertEqual(try parseKeptCheckpoint(formatKeptCheckpoint(kept)), kept)
        _ = try? packCallKey(CallKeyContent(callKey: emptyRoot, setHash: emptyRoot, sealedAtMs: one))
    }
}

private struct SameAnswer: LogTransport {
    let answer: LogAnswer

    func send(_ request: LogRequest) async -> LogAnswer { answer }
}
