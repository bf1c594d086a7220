import CallsignApp
import CallsignVerify
import Foundation
import XCTest

@testable import Model

/// Stands for CallKit, and takes down what it hears.
@MainActor private final class HeardSystem: CallSystem {
    var rung: [SystemCall] = []
    var ends: [SystemEnd] = []
    var isShown = true

    func ring(_ call: SystemCall, _ reported: @escaping @MainActor (_ isShown: Bool) -> Void) {
        rung.append(call)
        reported(isShown)
    }

    func place(_ call: SystemCall) async -> Bool { true }
    func connected(_ uuid: UUID) {}
    func ended(_ uuid: UUID, _ reason: SystemEnd) { ends.append(reason) }
    func answer(_ uuid: UUID) {}
    func hangUp(_ uuid: UUID) {}
}

/// A device without a session: nothing goes over the network.
@MainActor final class PhoneTests: XCTestCase {
    private let system = HeardSystem()
    private let invitation: [AnyHashable: Any] = [
        "type": "call_invitation", "eventId": "e1", "deviceId": "7", "callId": "6117204471893025", "callerId": "9",
        "callerName": "Ann", "isContact": false, "isVideo": true, "sentAt": 1_764_000_000_000,
        "expiresAt": "2025-11-24T16:01:00.000Z",
    ]

    private func model(deviceId: String?) throws -> CallsModel {
        UserDefaults.standard.set(deviceId, forKey: "deviceId")
        let pins = try LogKeys.ofVerifierKey(
            "kt.example.com/log+22a3b58a+AXm1Vi6P5lT5QHixEuipi6eQH4U65pW+1+DjkQutBJZk", vrfPublicKey: vrfPublicKey)
        let me = Callsign(server: try Server("https://call.example.org"), pins: pins, storage: MemoryAppStorage())
        let model = CallsModel(me)
        model.phone.system = system
        return model
    }

    func testAPushRingsBeforeItsHandlerReturns() async throws {
        var isDone = false
        try model(deviceId: "7").pushes.receiveVoIP(invitation, mustReport: true) { isDone = true }
        XCTAssertEqual(system.rung.map(\.handle), ["9"])
        XCTAssertEqual(system.rung.map(\.uuid), [callUUID("6117204471893025")])
        XCTAssertNotEqual(system.rung.first?.name, "Ann", "a stranger may have any name")
        XCTAssertEqual(system.ends, [])
        XCTAssertTrue(isDone)
    }

    func testAPushForAnotherDeviceIsReportedAndEnded() async throws {
        try model(deviceId: "8").pushes.receiveVoIP(invitation, mustReport: true) {}
        XCTAssertEqual(system.rung.map(\.handle), [""])
        XCTAssertEqual(system.ends, [.failed])
    }

    func testAPushBeforeTheFirstUnlockIsReportedAndEnded() async throws {
        try model(deviceId: nil).pushes.receiveVoIP(["sealed": "AAAA"], mustReport: true) {}
        XCTAssertEqual(system.rung.count, 1)
        XCTAssertEqual(system.ends, [.failed])
    }

    func testAPushThatNeedNoReportRingsOnce() async throws {
        let model = try model(deviceId: "7")
        model.pushes.receiveVoIP(invitation, mustReport: true) {}
        model.pushes.receiveVoIP(invitation, mustReport: false) {}
        XCTAssertEqual(system.rung.count, 1)
    }

    func testACallThatTheSystemDoesNotShowIsForgotten() async throws {
        system.isShown = false
        let model = try model(deviceId: "7")
        model.pushes.receiveVoIP(invitation, mustReport: true) {}
        XCTAssertFalse(model.phone.rings(callUUID("6117204471893025")))
    }

    func testAPushThatTheServersTimeEndsStops() async throws {
        let model = try model(deviceId: "7")
        model.pushes.receiveVoIP(invitation, mustReport: true) {}
        model.phone.stop(callUUID("6117204471893025"), .unanswered)
        model.phone.stop(callUUID("6117204471893025"), .unanswered)
        XCTAssertEqual(system.ends, [.unanswered])
    }

    func testQuestionsComeOneAfterTheOther() async throws {
        let asking = try model(deviceId: nil).asking
        let (answers, answered) = AsyncStream<String>.makeStream()
        for title in ["first", "second"] {
            let choice = Question.Choice(label: title) { answered.yield("\(title): \($0)") }
            asking.ask(Question(title: title, field: "", choices: [choice]))
        }
        var read = answers.makeAsyncIterator()
        asking.choose(try XCTUnwrap(asking.question?.choices.first), "1")
        let first = await read.next()
        XCTAssertEqual(first, "first: 1")
        while asking.question == nil { await Task.yield() }
        XCTAssertEqual(asking.question?.title, "second")
    }
}

private let vrfPublicKey = "VBNs2Q2Z+9HU6FXZVW7+qHugM38qbOIgKND1cm/LhU4="
