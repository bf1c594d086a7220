import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Calls to people with several devices.
final class DeviceCallsTests: ServedTests {
    private let annsHttp = AlteredHTTP()

    /// Ann, and Bob's first device with the address that he signs in by; they are contacts.
    private func withPhone(_ act: (_ ann: Callsign, _ phone: Callsign, _ address: String) async throws -> Void) async throws {
        let ann = try await server.person("Ann", annsHttp)
        let phone = try await server.app()
        let address = server.newAddress("Bob")
        try await server.signIn(phone, "Bob", address)
        try await befriend(ann, phone)
        try await act(ann, phone, address)
        await ann.close()
        await phone.close()
    }

    func testACalleeWhoseAppIsClosedAndTakesNoPushesIsUnreachable() async throws {
        try await withPhone { ann, phone, _ in
            let bobId = try known(phone.userId, "userId")
            await phone.close()
            let call = try await ann.call([bobId])
            let people = try await call.participants.first { people in people.contains { $0.isUnreachable } }
            let unreachable = people.filter(\.isUnreachable)
            XCTAssertEqual(unreachable.map(\.userId), [bobId])
            XCTAssertEqual(unreachable.map(\.state), [.invited])
            try await call.end()
        }
    }

    func testACallMovesToAnotherDeviceOfTheUserAndBackWithAKeyThatAPersonGives() async throws {
        try await withPhone { ann, phone, address in
            let laptop = try await server.approvedDevice(phone, address)
            let call = try await ann.call(known(phone.userId, "userId"))
            let onPhone = try await phone.nextRinging()
            let onLaptop = try await laptop.nextRinging()
            try await onPhone.answer()
            let elsewhere = try await onLaptop.ended()
            XCTAssertEqual(elsewhere, .answeredElsewhere)
            let moved = try await laptop.join(call.callId)
            let ending = try await onPhone.ended()
            XCTAssertEqual(ending, .moved)
            try await moved.becomes(.active)
            XCTAssertEqual(call.fingerprint, moved.fingerprint)
            try await moved.leave()
            // A server could make up such a device: the person here is asked.
            let events = call.events
            let back = try await phone.join(call.callId)
            let ask = try await firstAsk(events)
            XCTAssertEqual(ask.userId, phone.userId)
            XCTAssertEqual(ask.deviceId, phone.deviceId)
            try await call.grantKey(ask)
            try await back.becomes(.active)
            // The host makes a new key meanwhile, as a person has left.
            try await haveOneKey(call, back)
            try await call.end()
            await laptop.close()
        }
    }

    private func firstAsk(_ events: AsyncStream<CallEvent>) async throws -> KeyAsk {
        for await case .keyAsked(let ask) in events { return ask }
        throw Absent(name: "ask")
    }

    func testADeviceThatIsApprovedWhileACallIsSealedRingsToo() async throws {
        try await withPhone { ann, phone, address in
            let laptops = Locked<[Callsign]>([])
            let starts = Locked(0)
            let server = server
            annsHttp.alterations.before = { operation in
                guard operation == "call/start", starts.with({ $0 += 1; return $0 }) == 1 else { return }
                let approved = try await server.approvedDevice(phone, address)
                laptops.with { $0.append(approved) }
            }
            let call = try await ann.call(known(phone.userId, "userId"))
            XCTAssertEqual(starts.with { $0 }, 2)
            let laptop = try known(laptops.with { $0.first }, "laptop")
            for device in [laptop, phone] {
                let ringing = try await device.nextRinging()
                XCTAssertEqual(ringing.callId, call.callId)
            }
            try await call.end()
            await laptop.close()
        }
    }
}
