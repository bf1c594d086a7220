import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

/// What a server says must not end the app that hears it.
final class HostileServerTests: ServedTests {
    /// Its length in nanoseconds is more than any number has.
    func testACallThatRingsForThousandsOfYearsEndsNoApp() async throws {
        let ann = try await server.person("Ann")
        let deviceId = try known(ann.deviceId, "deviceId")
        let members = [
            "type": "call_invitation", "eventId": "1", "deviceId": "\(deviceId)", "callId": "1", "callerId": "2",
            "callerName": "Bob", "isContact": "true", "encryptedAESKey": "AAAA", "keyEpoch": "1", "sentAt": "0",
            "expiresAt": "9999-12-31T23:59:59Z",
        ]
        let action = try await ann.onPush(members)
        guard case .ringing = action else { return XCTFail("\(action)") }
        await ann.close()
    }
}

/// Waits that are longer than a number of nanoseconds.
final class WaitsTests: XCTestCase {
    func testAWaitOfAnyLengthIsOne() async {
        let waiting = Task { await isSlept(.max) }
        waiting.cancel()
        let isOver = await waiting.value
        XCTAssertFalse(isOver)
    }
}
