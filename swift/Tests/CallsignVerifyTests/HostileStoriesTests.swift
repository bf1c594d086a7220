import Foundation
import TestSupport
import XCTest

@testable import CallsignVerify

/// The stories of the vectors once more, with answers that are damaged on their way. Whatever comes, nothing traps, the pin does
/// not move back, and it holds only what the log has signed. `CALLSIGN_DAMAGES` and `CALLSIGN_DAMAGE_SEED` are as for
/// `HostileOctetsTests`.
final class HostileStoriesTests: XCTestCase {
    func testDamagedAnswersMoveNoPinBack() async throws {
        let environment = ProcessInfo.processInfo.environment
        let times = environment["CALLSIGN_DAMAGES"].flatMap { Int($0) }.map { $0 / 100 } ?? 1
        let seed = environment["CALLSIGN_DAMAGE_SEED"].flatMap { UInt64($0) } ?? 53
        let answers = DamagedAnswers(Damage(seed: seed, texts: [Array("9007199254740992".utf8), [0xff], Array("\n\n".utf8)]))
        var held = 0
        for name in ["client-stories", "client-lies", "client-index"] {
            let lines = try readLines(name)
            let published = try known(lines.first, name).get("keys")
            for line in lines.dropFirst() {
                for _ in 0..<times { held += try await tell(line, published, answers) }
            }
        }
        // Not every answer is damaged: the rest leads on, to what only a pin that is set can meet.
        XCTAssertGreaterThan(held, 20)
    }

    /// How many questions were answered well.
    private func tell(_ line: JSONValue, _ published: JSONValue, _ answers: DamagedAnswers) async throws -> Int {
        let vrfPublicKey = try published.text("vrfPublicKey")
        let keys =
            try line.textOrNil("policy").map { try LogKeys.ofPolicy($0, vrfPublicKey: vrfPublicKey) } ?? keysOf(published)
        let store = MemoryCheckpointStore()
        let client = try LogClient(
            keys: keys, url: "https://log.example", store: store, transport: answers, nowMs: { 1_790_000_000_000 },
            mirror: line.textOrNil("mirror"))
        let contacts = ContactDevices(lookups: client, store: MemoryKnownUserStore()) { try answers.lists($0, $1) }
        var (held, size) = (0, 0)
        for step in line.list("steps") {
            answers.exchanges.with { $0 = step.list("exchanges").filter { $0.find("isLate") == nil } }
            do {
                held += try await act(step.text("act"), step.get("given"), client, contacts) ? 1 : 0
            } catch is LogError {
                // What the story gives is damaged, too.
            }
            for origin in [keys.origin, indexOriginOf(keys.origin)] {
                guard let kept = await store.get(origin) else { continue }
                let signer = try origin == keys.origin ? keys : known(keys.index?.log, origin)
                let verified = VerifiedCheckpoint(checkpoint: kept.checkpoint)
                XCTAssertEqual(verifyCheckpoint(signer, kept.checkpoint.note), .holds(verified))
                if origin != keys.origin { continue }
                XCTAssertGreaterThanOrEqual(kept.checkpoint.treeSize, size)
                size = kept.checkpoint.treeSize
            }
        }
        return held
    }

    private func act(_ act: String, _ given: JSONValue, _ client: LogClient, _ contacts: ContactDevices) async throws -> Bool {
        let userId = given.textOrNil("userId").flatMap(uint64) ?? 7
        let deviceId = given.textOrNil("deviceId").flatMap(uint64) ?? 0
        let vrfHash = given.textOrNil("vrfHash") ?? ""
        switch act {
        case "lookUp":
            let device = DeviceToLookUp(userId: userId, deviceId: deviceId, vrfHash: vrfHash)
            return holds(try await client.lookUp(device))
        case "checkOwnKeys":
            let keys = try given.texts("publicKeys")
            return holds(
                try await client.checkOwnKeys(
                    OwnDevice(userId: userId, deviceId: deviceId, vrfHash: vrfHash, publicKeys: keys)))
        case "refresh": return holds(try await client.refreshCheckpoint())
        case "compareWith": return holds(try await client.compareWith(given.string ?? ""))
        case "checkOwnList": return holds(try await contacts.checkOwnList(given.string ?? ""))
        case "verify", "verifyAndShow": return holds(try await contacts.verify(userIn(given)))
        case "verifyShared":
            let person = ListedPerson(userId: 7, listHash: given.textOrNil("listHash") ?? "")
            return holds(try await contacts.verifyShared(userIn(given.get("user")), person))
        default: return false
        }
    }

    private func holds<Value>(_ outcome: Outcome<Value>) -> Bool {
        if case .holds = outcome { true } else { false }
    }

    private func userIn(_ given: JSONValue) -> NamedUser {
        func text(_ value: JSONValue, _ name: String) -> String { value.textOrNil(name) ?? "" }
        let devices = given.list("devices").map {
            NamedDevice(
                deviceId: text($0, "deviceId"), keyAlgorithm: text($0, "keyAlgorithm"), publicKey: text($0, "publicKey"),
                publicKeyHash: text($0, "publicKeyHash"))
        }
        let absent = given.find("absent").map {
            AbsentList(
                vrfHash: text($0, "vrfHash"), vrfProof: text($0, "vrfProof"), indexProof: $0.find("indexProof")?.text)
        }
        return NamedUser(
            userId: text(given, "userId"), devices: devices, deviceList: given.textOrNil("deviceList"),
            deviceListHash: given.textOrNil("deviceListHash"), absent: absent)
    }
}

private final class DamagedAnswers: LogTransport {
    let exchanges = Locked<[JSONValue]>([])
    private let damage: Locked<Damage>

    init(_ damage: Damage) { self.damage = Locked(damage) }

    func send(_ request: LogRequest) async throws -> LogAnswer {
        let path = String(request.url.dropFirst("https://log.example/".count))
        return LogAnswer(status: 200, body: try answer(path))
    }

    func lists(_ userId: String, _ after: Int?) throws -> [String] {
        let body = try answer("user/device-lists?userId=\(userId)\(after.map { "&after=\($0)" } ?? "")")
        return JSONValue(octets: body)?.array?.compactMap(\.string) ?? []
    }

    private func answer(_ path: String) throws -> [UInt8] {
        let found = exchanges.with { $0 }.first { $0.textOrNil("path") == path && $0.find("answer") != nil }
        guard let found else { throw TransportError(description: "not asked") }
        var body = try found.base64("answer")
        damage.with { damage in
            switch damage.below(8) {
            case 0: damage.damage(&body)
            case 1: if let json = JSONValue(octets: body) { body = Array(damage.damaged(json).text.utf8) }
            default: break
            }
        }
        return body
    }
}
