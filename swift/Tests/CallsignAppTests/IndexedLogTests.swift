import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// The key log of an app that knows the index of its log.
final class IndexedLogTests: XCTestCase {
    private struct NotInStory: Error {}

    /// A log that answers as in `test/support/index-stories.ts`.
    private struct StoryLog: LogTransport {
        let answers = Locked<[JSONValue]>([])

        func send(_ request: LogRequest) async throws -> LogAnswer {
            let path = request.url.replacingOccurrences(of: "https://log.example/", with: "")
            // Members of an object have no order.
            let body = request.body.flatMap { JSONValue($0) }
            let answer = answers.with { answers in
                answers.first { $0.textOrNil("path") == path && $0.textOrNil("body").flatMap { JSONValue($0) } == body }
            }
            guard let answer else { throw NotInStory() }
            return LogAnswer(status: try answer.number("status"), body: try answer.base64("answer"))
        }
    }

    /// A device whose public key is the story's.
    private struct StoryKeys: DeviceKeys {
        let publicKey: String
        private let keys = SoftwareDeviceKeys.generate()

        init(publicKey: String) { self.publicKey = publicKey }

        var signingKey: String { keys.signingKey }

        func agree(_ point: [UInt8]) async throws -> [UInt8] { try await keys.agree(point) }

        func sign(_ message: [UInt8]) async throws -> [UInt8] { try await keys.sign(message) }
    }

    func testTheOwnKeyTwiceUnderItsHashIsRefusedSinceOtherAppsRefuseIt() async throws {
        let lines = try readLines("client-index")
        let vrfPublicKey = try known(lines.first, "lines").get("keys").text("vrfPublicKey")
        let name = "an own key that was logged twice is there twice"
        let story = try known(lines.first { $0.textOrNil("story") == name }, name)
        let steps = story.list("steps")
        let own = try known(steps.first, "steps").get("given")
        let keys = StoryKeys(publicKey: try known(own.texts("publicKeys").first, "publicKeys"))
        let device = RegisteredDevice(
            userId: try known(UInt64(own.text("userId")), "userId"),
            deviceId: try known(UInt64(own.text("deviceId")), "deviceId"),
            publicKeyHash: try own.text("vrfHash"),
            keys: keys
        )
        let storage = MemoryAppStorage()
        let log = StoryLog()
        let events = Locked<[KeyEvent]>([])
        let keyLog = try await KeyLog(
            session: Session.open(try Server("https://log.example"), storage),
            storage: storage,
            device: device,
            keys: LogKeys.ofPolicy(story.text("policy"), vrfPublicKey: vrfPublicKey),
            url: "https://log.example",
            transport: log
        ) { event in events.with { $0.append(event) } }
        log.answers.with { $0 = steps[0].list("exchanges") }
        let report = try await keyLog.checkOwn()
        XCTAssertEqual(report.ownKeys, .clean)
        XCTAssertEqual(report.complete, .complete)
        log.answers.with { $0 = steps[1].list("exchanges") }
        let refused = try await failure { _ = try await keyLog.checkOwn() }
        XCTAssertEqual(refused.code, "KEYS_REFUSED")
        XCTAssertEqual(refused.members.text("check"), "otherKey")
        guard case .refused(_, let refusal)? = events.with({ $0.first }) else { return XCTFail("no event") }
        XCTAssertEqual(refusal.check, .otherKey)
        XCTAssertEqual(events.with { $0.count }, 1)
    }

    func testTheProofThatAUserHasNoListIsReadAsTheServerGivesIt() throws {
        func absentIn(_ absent: String) throws -> AbsentList? {
            try publishedUserOf(known(objectIn(#"{"userId":"7","devices":[]\#(absent)}"#), "user")).named.absent
        }
        XCTAssertNil(try absentIn(""))
        let members = #""deviceId":"0","vrfHash":"aGFzaA==","vrfProof":"cHJvb2Y=""#
        XCTAssertEqual(try absentIn(#","absent":{\#(members)}"#), AbsentList(vrfHash: "aGFzaA==", vrfProof: "cHJvb2Y="))
        let proof = #"{"index_proof":"AA==","index_value":[]}"#
        XCTAssertEqual(
            try absentIn(#","absent":{\#(members),"indexProof":\#(proof)}"#),
            AbsentList(vrfHash: "aGFzaA==", vrfProof: "cHJvb2Y=", indexProof: proof))
        XCTAssertThrowsError(try absentIn(#","absent":{"vrfHash":"aGFzaA=="}"#)) { error in
            XCTAssertEqual((error as? CallsignError)?.code, "ANSWER_INVALID")
        }
    }
}
