import CallsignVerify
import Foundation
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

/// As the built server makes them; skipped where it is not built.
final class ServedPushTests: ServedTests {
    private let tokens = PushTokens(
        apnsToken: String(repeating: "a1", count: 32), apnsVoipToken: String(repeating: "b2", count: 32),
        bundleId: "org.example.calls")

    /// As Apple's systems hand over what has left for the user.
    private func push(_ userId: UInt64, _ type: String, _ isOne: ([String: String]) -> Bool) async throws -> [String: String] {
        let url = "\(server.url)/dev/pushes?userId=\(userId)"
        let request = HTTPRequest(method: "GET", url: url, octetsMax: 1024 * 1024, timeoutMs: 15_000)
        while true {
            let body = try await known(platformHTTP().send(request).body, url)
            let items = JSONValue(octets: body)?.list("items") ?? []
            for item in items where item.textOrNil("kind") == type {
                let payload = try JSONSerialization.jsonObject(with: Data(item.get("payload").text.utf8))
                let members = pushMembers(try known(payload as? [AnyHashable: Any], "payload"))
                if isOne(members) { return members }
            }
            try await Task.sleep(nanoseconds: 10_000_000)
        }
    }

    private func bob(
        _ storage: any AppStorage, sealed: Bool?, _ http: any HTTPTransport = platformHTTP()
    ) async throws -> Callsign {
        let pins = try await developmentPins(server.url)
        return Callsign(
            server: try server.seen(http), pins: pins, storage: storage, device: DeviceDetails(push: tokens),
            sealedPushes: sealed)
    }

    func testADeviceAsksForSealedPushesOpensThemAndTakesItBack() async throws {
        let (ann, storage) = (try await server.person("Ann"), MemoryAppStorage())
        let first = try await bob(storage, sealed: true)
        let bobId = try await server.signIn(first, "Bob")
        try await befriend(ann, first)
        let call = try await ann.call(bobId)
        let ring = try await push(bobId, "call_invitation") { _ in true }
        XCTAssertEqual(Array(ring.keys), ["sealed"])
        let opened = try await first.onPush(ring)
        guard case .ringing(let pushed, _) = opened else { return XCTFail("\(opened)") }
        XCTAssertEqual([pushed.callerName, pushed.callId], ["Ann", call.callId])
        let deviceId = try known(first.deviceId, "deviceId")
        let key = try await known(PushKey.of(userId: bobId, deviceId: deviceId, in: storage), "key")
        let report = judgeVoIPPush(key.open(ring), deviceId: deviceId, serverNowMs: nil, rings: { _ in false })
        guard case .report(let reported) = report else { return XCTFail("\(report)") }
        XCTAssertEqual([reported.uuid], [callUUID(call.callId)])
        XCTAssertNil(reported.endsAs)
        try await call.end()
        let missed = try await first.onPush(push(bobId, "missed_call") { _ in true })
        guard case .notice("missed_call", let members) = missed else { return XCTFail("\(missed)") }
        XCTAssertEqual(members["callId"], call.callId)
        let strange = try await first.onPush(["sealed": String(known(ring["sealed"], "sealed").reversed())])
        XCTAssertEqual(strange, .nothing)
        await first.close()

        // Without the key of its storage nothing opens.
        let kept = try await storage.get("push-key.\(bobId)")
        try await storage.put("push-key.\(bobId)", nil)
        let second = try await bob(storage, sealed: nil)
        let unopened = try await second.onPush(ring)
        XCTAssertEqual(unopened, .nothing)
        await second.close()
        try await storage.put("push-key.\(bobId)", kept)

        // Its own: a registration of an app that has closed may be under way still.
        let (http, registered) = (AlteredHTTP(), Signal())
        http.alterations.after = { if $0 == "register_device" { registered.give() } }
        let third = try await bob(storage, sealed: false, http)
        try await third.resume()
        await registered.given()
        let next = try await ann.call(bobId)
        let callId = next.callId
        let open = try await third.onPush(push(bobId, "call_invitation") { $0["callId"] == callId })
        guard case .ringing(let rings, _) = open else { return XCTFail("\(open)") }
        XCTAssertEqual(rings.callId, callId)
        try await next.end()
        await third.close()
        await ann.close()
    }
}
