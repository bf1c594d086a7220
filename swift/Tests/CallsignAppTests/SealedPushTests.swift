import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Pushes that only the device can read.
final class SealedPushTests: XCTestCase {
    private func opened(_ vector: JSONValue) throws -> [String: String]? {
        let deviceId = try known(uint64(vector.text("deviceId")), "deviceId")
        return openPush(pushKey: try vector.text("pushKey"), deviceId: deviceId, try vector.text("sealed"))
    }

    func testThoseOfTheVectorsOpen() throws {
        let vectors = try readVectors("sealed-push").list("opens")
        XCTAssertFalse(vectors.isEmpty)
        for vector in vectors {
            let members = try known(vector.get("members").object, "members")
            let texts = Dictionary(uniqueKeysWithValues: try members.keys.map { ($0, try known(members.text($0), $0)) })
            let name = try vector.text("name")
            XCTAssertEqual(try opened(vector), texts, name)
        }
    }

    func testTheOthersAreRefused() throws {
        let vectors = try readVectors("sealed-push").list("refused")
        XCTAssertFalse(vectors.isEmpty)
        for vector in vectors {
            let name = try vector.text("name")
            XCTAssertNil(try opened(vector), name)
        }
        XCTAssertNil(openPush(pushKey: "?", deviceId: 1, "AAAA"))
    }

    func testAnAppOpensThemByTheKeyThatWasKept() async throws {
        let vector = try known(readVectors("sealed-push").list("opens").first, "vector")
        let deviceId = try known(uint64(vector.text("deviceId")), "deviceId")
        let storage = MemoryAppStorage()
        let none = try await PushKey.of(userId: 7, deviceId: deviceId, in: storage)
        XCTAssertNil(none)
        try await storage.put("push-key.7", JSONValue.object(["pushKey": vector.get("pushKey")]).text)
        let key = try await known(PushKey.of(userId: 7, deviceId: deviceId, in: storage), "key")
        XCTAssertEqual(key.open(["sealed": try vector.text("sealed")]), try opened(vector))
        XCTAssertEqual(key.open(["type": "missed_call"]), ["type": "missed_call"])
        XCTAssertNil(key.open(["type": "missed_call", "sealed": "AAAA"]))
    }

    func testTheKeyIsMadeOnceForEachUserAndADamagedOneIsAnError() async throws {
        let storage = MemoryAppStorage()
        let before = try await pushKeyOf(storage, userId: 7)
        XCTAssertNil(before)
        let made = try await makePushKey(storage, userId: 7)
        XCTAssertEqual(try decodeBase64(made).count, 32)
        let again = try await [makePushKey(storage, userId: 7), pushKeyOf(storage, userId: 7), makePushKey(storage, userId: 8)]
        XCTAssertEqual(again[..<2], [made, made])
        XCTAssertNotEqual(again[2], made)
        for text in ["{\"pushKey\":\"AAAA\"}", "{}", "[]", "?"] {
            try await storage.put("push-key.7", text)
            let code = await codeOf { _ = try await pushKeyOf(storage, userId: 7) }
            XCTAssertEqual(code, "STORAGE_CORRUPT", text)
        }
    }
}
