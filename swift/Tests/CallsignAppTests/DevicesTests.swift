import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Devices and their lists.
final class DevicesTests: ServedTests {
    private struct Dead: Error {}

    /// Fails from a write on, as if the app had been killed before it.
    private final class DyingStorage: AppStorage {
        private let kept: any AppStorage
        private let writesLeft: Locked<Int>

        init(_ kept: any AppStorage, _ writesLeft: Int) {
            self.kept = kept
            self.writesLeft = Locked(writesLeft)
        }

        func get(_ key: String) async throws -> String? { try await kept.get(key) }

        func put(_ key: String, _ text: String?) async throws {
            if writesLeft.with({ $0 -= 1; return $0 }) < 0 { throw Dead() }
            try await kept.put(key, text)
        }
    }

    func testAnAppThatDiesBeforeAnyWriteOfItsFirstSignInIsOneListedDeviceAfterTheNext() async throws {
        var writes = 0
        while true {
            let address = "ann-\(writes)@example.org"
            let storage = MemoryAppStorage()
            let dying = try await server.app(DyingStorage(storage, writes))
            var code: String?
            do { try await server.signIn(dying, "Ann", address) } catch { code = (error as? CallsignError)?.code ?? "\(error)" }
            await dying.close()
            let again = try await server.app(storage)
            if try await again.resume() == nil { try await server.signIn(again, "Ann", address) }
            let state = try await again.devices.listState.first { $0 != nil }
            XCTAssertEqual(state, .listed(waiting: []), address)
            let devices = try await again.devices.list().map(\.deviceId)
            XCTAssertEqual(devices, [try known(again.deviceId, "deviceId")], address)
            await again.close()
            guard let code else { break }
            XCTAssertEqual(code, "STORAGE_FAILED")
            writes += 1
        }
        // Tokens, address, keys, list, device, and the list taken away.
        XCTAssertGreaterThanOrEqual(writes, 6)
    }

    func testASecondDeviceWaitsUntilTheFirstOneApprovesItByACodeThatBothShow() async throws {
        let first = try await server.app()
        try await server.signIn(first, "Bob", "bob@example.org")
        let second = try await server.app()
        try await server.signIn(second, "Bob", "bob@example.org")
        let state = try await second.devices.listState.first { if case .waiting = $0 { true } else { false } }
        let waiting = try await first.nextWaiting()
        XCTAssertEqual(state, .waiting(code: waiting.code))
        XCTAssertEqual(second.deviceId, waiting.deviceId)
        try await first.devices.approve(waiting)
        try await second.devices.listState.first { $0 == .listed(waiting: []) }
        try await second.devices.remove(known(first.deviceId, "deviceId"))
        try await first.user.first { $0 == nil }
        XCTAssertNil(first.userId)
        await second.close()
    }

    func testAUserIsReportedForOneOfTheServersReasonsAndNobodyReportsThemselves() async throws {
        let (ann, bob) = (try await server.person("Ann"), try await server.person("Bob"))
        let reasons = try await ann.contacts.reportReasons()
        XCTAssertEqual(reasons.first, ReportReason(reason: "harassment", title: "Bullying or harassment"))
        let (annId, bobId) = (try known(ann.userId, "userId"), try known(bob.userId, "userId"))
        let report = try await ann.contacts.report(bobId, reason: "threat", text: "At night", callId: "7")
        XCTAssertNotNil(UInt64(report))
        let refused = try await failure { try await ann.contacts.report(annId, reason: "other") }
        XCTAssertEqual(refused.code, "SELF_REQUEST")
        for app in [ann, bob] { await app.close() }
    }
}
