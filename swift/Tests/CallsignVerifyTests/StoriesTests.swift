import Foundation
import TestSupport
import XCTest

@testable import CallsignVerify

/// Both implementations ask a log the same questions and make the same of its answers, step by step with what they remember:
/// stories of `test/support/verdict-stories.ts`, in which logs fork, lie and fall silent. Both stores are files here.
final class StoriesTests: XCTestCase {
    func testTheFrozenStoriesEndAsInTheTypeScriptClient() async throws {
        let told = try await tell(vectors("client-stories"))
        XCTAssertGreaterThanOrEqual(told, 14)
    }

    /// `test/support/lying-stories.ts` says what each lie is, and how it is found out.
    func testAServerThatLiesIsFoundOutAsInTheTypeScriptClient() async throws {
        let told = try await tell(vectors("client-lies"))
        XCTAssertGreaterThanOrEqual(told, 28)
    }

    /// `test/support/index-stories.ts` says what each lie about the index is.
    func testAnIndexThatLiesOrAServerThatLiesAboutItIsFoundOutAsInTheTypeScriptClient() async throws {
        let told = try await tell(vectors("client-index"))
        XCTAssertGreaterThanOrEqual(told, 21)
    }

    /// `test/support/cache-stories.ts` says who lies in each, and that only servers leave evidence.
    func testACacheThatIsLateOrLiesIsToldApartFromAServerThatLiesAsInTheTypeScriptClient() async throws {
        let told = try await tell(vectors("client-caches"))
        XCTAssertGreaterThanOrEqual(told, 29)
    }

    /// Made by `node dist/test/support/verdict-stories.js`.
    func testStoriesThatTheEnvironmentNamesDoSoToo() async throws {
        guard let path = ProcessInfo.processInfo.environment["CALLSIGN_STORIES"] else {
            throw XCTSkip("CALLSIGN_STORIES names no file")
        }
        print("CallsignVerify: \(try await tell(URL(fileURLWithPath: path))) stories ended alike")
    }

    private func vectors(_ name: String) -> URL { projectRoot.appendingPathComponent("test/vectors/\(name).jsonl") }

    private func tell(_ file: URL) async throws -> Int {
        let lines = try readLines(file)
        let head = try known(lines.first, file.path)
        let plain = try keysOf(head.get("keys"))
        for line in lines.dropFirst() {
            let policy = line.textOrNil("policy")
            let vrfPublicKey = try head.get("keys").text("vrfPublicKey")
            let keys = try policy.map { try LogKeys.ofPolicy($0, vrfPublicKey: vrfPublicKey) } ?? plain
            let folder = try TemporaryFolder()
            let story = try Story(keys, folder.url, line)
            for (number, step) in line.list("steps").enumerated() {
                let place = "seed \(try head.get("seed").text), story \(try line.get("story").text), step \(number)"
                let outcome = try await story.step(step)
                XCTAssertEqual(try step.text("outcome"), outcome, place)
            }
        }
        return lines.count - 1
    }
}

/// The log's server, as the TypeScript client met it.
private final class Exchanges: LogTransport {
    let recorded = Locked<[JSONValue]>([])

    func send(_ request: LogRequest) async throws -> LogAnswer {
        let prefix = "https://log.example/"
        let path = request.url.hasPrefix(prefix) ? String(request.url.dropFirst(prefix.count)) : request.url
        // Texts with the members in another order say the same.
        let asked = request.body.map { JSONValue($0) }
        guard
            let found = recorded.with({ $0 }).first(where: { exchange in
                exchange.textOrNil("path") == path && exchange.textOrNil("body").map { JSONValue($0) } == asked
            })
        else {
            XCTFail("the other client did not ask for \(path) \(request.body ?? "")")
            throw TransportError(description: "not asked")
        }
        if found.find("isLate") != nil { try await neverEnding() }
        guard let status = found.find("status")?.int else { throw TransportError(description: "no network") }
        return LogAnswer(status: status, body: try found.base64("answer"))
    }

    func lists(_ userId: String, _ after: Int?) async throws -> [String] {
        let path = "user/device-lists?userId=\(userId)\(after.map { "&after=\($0)" } ?? "")"
        let answer = try await send(LogRequest(url: "https://log.example/\(path)", body: nil, answerOctetsMax: 1 << 20))
        return try known(JSONValue(octets: answer.body)?.array, path).map { try known($0.string, path) }
    }
}

/// Returns only by throwing, once its task is cancelled.
func neverEnding() async throws {
    let (never, ending) = AsyncStream<Void>.makeStream()
    for await _ in never {}
    try Task.checkCancellation()
    ending.finish()
}

private final class Story {
    private let keys: LogKeys

    /// What the app is made with besides the keys.
    private let options: JSONValue
    private let checkpoints: FileCheckpointStore
    private let users: FileKnownUserStore
    private let exchanges = Exchanges()
    private let nowMs = Locked(1_790_000_000_000)
    private var client: LogClient
    private var contacts: ContactDevices

    init(_ keys: LogKeys, _ folder: URL, _ options: JSONValue) throws {
        self.keys = keys
        self.options = options
        checkpoints = FileCheckpointStore(folder: folder.appendingPathComponent("checkpoints"))
        users = FileKnownUserStore(folder: folder.appendingPathComponent("users"))
        (client, contacts) = try Self.newClient(keys, options, checkpoints, users, exchanges, nowMs)
    }

    private static func newClient(
        _ keys: LogKeys,
        _ options: JSONValue,
        _ checkpoints: FileCheckpointStore,
        _ users: FileKnownUserStore,
        _ exchanges: Exchanges,
        _ nowMs: Locked<Int>
    ) throws -> (LogClient, ContactDevices) {
        let client = try LogClient(
            keys: keys,
            url: "https://log.example",
            store: checkpoints,
            transport: exchanges,
            timeoutMs: options.find("timeoutMs")?.int ?? 20_000,
            maxAgeMs: options.find("maxAgeMs")?.int,
            nowMs: { nowMs.with { $0 } },
            mirror: options.textOrNil("mirror"),
            completeness: options.textOrNil("completeness").flatMap(CompletenessDemand.init),
            maxIndexAgeMs: options.find("maxIndexAgeMs")?.int
        )
        let contacts = ContactDevices(lookups: client, store: users) { try await exchanges.lists($0, $1) }
        return (client, contacts)
    }

    func step(_ step: JSONValue) async throws -> String {
        exchanges.recorded.with { $0 = step.list("exchanges") }
        let outcome: String
        do {
            outcome = try await act(try step.text("act"), try step.get("given"))
        } catch let error as LogError {
            outcome = "rejected \(error.code.rawValue)"
        }
        return outcome + (try await memory())
    }

    private func act(_ act: String, _ given: JSONValue) async throws -> String {
        switch act {
        case "lookUp":
            let device = DeviceToLookUp(
                userId: try given.id("userId"), deviceId: try given.id("deviceId"), vrfHash: try given.text("vrfHash"))
            return try await client.lookUpAll([device]).map(lookupText).joined(separator: "; ")
        case "checkOwnKeys":
            let device = OwnDevice(
                userId: try given.id("userId"),
                deviceId: try given.id("deviceId"),
                vrfHash: try given.text("vrfHash"),
                publicKeys: try given.texts("publicKeys")
            )
            return ownKeysText(try await client.checkOwnKeys(device))
        case "refresh": return headText(try await client.refreshCheckpoint())
        case "compareWith": return headText(try await client.compareWith(try known(given.string, act)))
        case "plantPending":
            if var kept = try await checkpoints.get(keys.origin) {
                kept.pending = try known(given.array, act).map { try known($0.string, act) }
                try await checkpoints.put(kept)
            }
            return ""
        case "wait":
            let hours = try known(given.int, act)
            nowMs.with { $0 += hours * 3_600_000 }
            return ""
        case "restart":
            (client, contacts) = try Self.newClient(keys, options, checkpoints, users, exchanges, nowMs)
            return ""
        default: return try await actOnPerson(act, given)
        }
    }

    private func actOnPerson(_ act: String, _ given: JSONValue) async throws -> String {
        switch act {
        case "checkOwnList": return ownKeysText(try await contacts.checkOwnList(try known(given.string, act)))
        case "verifyShared":
            let user = try namedUser(given.get("user"))
            let person = ListedPerson(userId: try given.get("user").id("userId"), listHash: try given.text("listHash"))
            return devicesText(try await contacts.verifyShared(user, person))
        case "accept":
            let open = try await contacts.accept("7", listHash: try known(given.string, act))
            return open.map { questionText($0) } ?? "accepted"
        case "verify": return devicesText(try await contacts.verify(try namedUser(given)))
        case "verifyAndShow":
            let user = try namedUser(given)
            let outcome = try await contacts.verify(user)
            if case .holds(let verified) = outcome {
                try await contacts.shown(user.userId, verified.events)
            } else {
                try await contacts.shown(user.userId, [])
            }
            return devicesText(outcome)
        default: throw VectorError(name: act)
        }
    }

    private func memory() async throws -> String {
        let kept = try await checkpoints.get(keys.origin)
        let known = try await users.get("7")
        let pending = (kept?.pending ?? []).map(sizeIn).joined(separator: " ")
        let list = known?.list.map { ", list \($0.index) since \($0.sinceIndex) \($0.sinceSeq)" } ?? ""
        let events = known.map { ", \(eventsText($0.events))\(questionText($0.question))" } ?? ""
        let index = try await checkpoints.get("\(keys.origin)/index").map { ", index \($0.checkpoint.treeSize)" } ?? ""
        let size = kept.map { "\($0.checkpoint.treeSize)" } ?? "none"
        return " | \(size), pending \(pending)\(index)\(list)\(events)"
    }
}

extension JSONValue {
    fileprivate func id(_ name: String) throws -> UInt64 { try known(uint64(try text(name)), name) }
}

private func namedUser(_ user: JSONValue) throws -> NamedUser {
    NamedUser(
        userId: try user.text("userId"),
        devices: try user.list("devices").map {
            NamedDevice(
                deviceId: try $0.text("deviceId"),
                keyAlgorithm: try $0.text("keyAlgorithm"),
                publicKey: try $0.text("publicKey"),
                publicKeyHash: try $0.text("publicKeyHash")
            )
        },
        deviceList: user.textOrNil("deviceList"),
        deviceListHash: user.textOrNil("deviceListHash"),
        absent: try user.find("absent").map {
            AbsentList(
                vrfHash: try $0.text("vrfHash"), vrfProof: try $0.text("vrfProof"), indexProof: $0.find("indexProof")?.text)
        }
    )
}

private func refusalText(_ refusal: Refusal) -> String {
    let evidence = refusal.evidence.map { " by \(sizeIn($0.known)) and \(sizeIn($0.seen))" } ?? ""
    return "refused at \(refusal.check.rawValue)\(evidence)"
}

private func unansweredText(_ unanswered: Unanswered) -> String {
    let status = unanswered.status.map { "\($0)" } ?? "-"
    let check = unanswered.check.map { " at \($0.rawValue)" } ?? ""
    return "unanswered \(status) \(unanswered.code ?? "-")\(check)"
}

private func text<Value>(_ outcome: Outcome<Value>, _ holds: (Value) -> String) -> String {
    switch outcome {
    case .holds(let value): holds(value)
    case .refused(let refusal): refusalText(refusal)
    case .unanswered(let unanswered): unansweredText(unanswered)
    }
}

private func lookupText(_ outcome: Outcome<VerifiedKey>) -> String {
    text(outcome) { key in
        let completeness = key.completeness == .unindexed ? "" : ", \(completenessText(key.completeness))"
        return "verified \(key.index) of \(key.checkpoint.treeSize)\(completeness)"
    }
}

private func headText(_ outcome: Outcome<VerifiedCheckpoint>) -> String {
    text(outcome) { "verified \($0.checkpoint.treeSize)" }
}

private func ownKeysText(_ outcome: Outcome<OwnKeysReport>) -> String {
    func leaves(_ keys: [LoggedKey]) -> String { keys.map { "\($0.index)" }.joined(separator: " ") }
    return text(outcome) { report in
        switch report.ownKeys {
        case .clean: "clean, \(leaves(report.entries))"
        case .alert(let foreign, let missing, let outdated):
            "alert, foreign \(leaves(foreign)), missing \(missing.joined(separator: " ")), "
                + "outdated \(leaves(outdated)), \(leaves(report.entries))"
        }
    }
}

private func devicesText(_ outcome: Outcome<VerifiedDevices>) -> String {
    text(outcome) { verified in
        let devices = verified.devices.map { "\($0.device.deviceId)\($0.signingKey == nil ? "" : "+")" }
        let proof = verified.isProved ? "proved" : "unproved"
        let complete = verified.complete == .unindexed ? "" : ", complete \(verified.complete.rawValue) \(proof)"
        return "verified by \(verified.basis.rawValue): \(devices.joined(separator: " "))\(complete); "
            + "\(eventsText(verified.events))\(questionText(verified.question))"
    }
}

private func questionText(_ question: KeyQuestion?) -> String {
    question.map { ", asks \($0.kind.rawValue) \($0.listHash)" } ?? ""
}

private func eventsText(_ events: [DeviceEvent]) -> String {
    "events \(events.map { "\($0.kind.rawValue):\($0.deviceId ?? "all")" }.joined(separator: " "))"
}

/// The second line of a note is its tree size.
private func sizeIn(_ note: String) -> String {
    let lines = linesOf(note.utf8)
    return lines.count > 1 ? textOf(lines[1]) : note
}
