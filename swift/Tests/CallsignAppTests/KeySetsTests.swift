import CallsignVerify
import Foundation
import TestSupport
import XCTest

@testable import CallsignApp

/// A server that has Ann's keys, and tells Bob what it likes: by pushes, and in answers that `http` alters.
private struct Deceived {
    let ann: Callsign
    let stolen: OwnKeyHolder
    let bob: Callsign
    let bobs: KeyHolder
    let bobsAddress: String
    let http: AlteredHTTP

    func set() throws -> String { try keyMembersOf([stolen.holder, bobs]) }

    func call() async throws -> Call { try await ann.call(bobs.userId) }

    /// Gives the call as it rings at Bob, with a key that Ann's device has sealed.
    func ring(
        _ call: Call, _ key: [UInt8], set: String? = nil, sealedAgoMs: Int = 0, callerId: UInt64? = nil
    ) async throws -> Call {
        let nowMs = systemTimeMs()
        let setHash = try hashOfSet(set ?? self.set())
        let content = try packCallKey(CallKeyContent(callKey: key, setHash: setHash, sealedAtMs: nowMs - sealedAgoMs))
        let binding = KeyBinding(callId: call.callId, epoch: 1)
        let format = ISO8601DateFormatter()
        format.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        let members = [
            "type": "call_invitation",
            "eventId": call.callId,
            "deviceId": "\(bobs.deviceId)",
            "callId": call.callId,
            "callerId": "\(callerId ?? stolen.holder.userId)",
            "encryptedAESKey": try await sealCallKey(content, from: stolen, to: bobs, binding: binding),
            "keyEpoch": "1",
            "keyFromUserId": "\(stolen.holder.userId)",
            "keyFromDeviceId": "\(stolen.holder.deviceId)",
            "sentAt": "\(nowMs)",
            "expiresAt": format.string(from: Date(timeIntervalSince1970: Double(nowMs / 1_000 + 60))),
        ]
        _ = try await bob.onPush(members)
        let callId = call.callId
        return try await bob.ringing.first { $0.callId == callId }
    }
}

/// A server that lies about a call's key, and about the devices that it is for; skipped where it is not built.
final class KeySetsTests: ServedTests {
    private func keys(of app: Callsign, _ storage: any AppStorage) async throws -> OwnKeyHolder {
        let userId = try known(app.userId, "userId")
        return try OwnKeyHolder(
            userId: userId, deviceId: known(app.deviceId, "deviceId"), keys: await softwareKeys(storage)(userId))
    }

    private func deceived(_ act: (Deceived) async throws -> Void) async throws {
        let (annsStorage, bobsStorage) = (MemoryAppStorage(), MemoryAppStorage())
        let ann = try await server.person("Ann", platformHTTP(), annsStorage)
        let http = AlteredHTTP()
        let network = BreakableNetwork(http, TCPStompTransport(server.stompTcp))
        let bob = try await server.app(bobsStorage, http, network)
        let address = server.newAddress("Bob")
        try await server.signIn(bob, "Bob", address)
        try await befriend(ann, bob)
        // No true invitation comes by the socket.
        network.cut()
        try await bob.connection.first { $0 == .connecting }
        try await act(
            Deceived(
                ann: ann, stolen: keys(of: ann, annsStorage), bob: bob, bobs: keys(of: bob, bobsStorage).holder,
                bobsAddress: address, http: http))
        await bob.close()
        await ann.close()
    }

    private func codeOf(_ act: @Sendable () async throws -> Void) async throws -> String { try await failure(act).code }

    func testASetThatWasAlteredOnTheWayIsRefusedAndTheTrueOneIsTaken() async throws {
        let http = AlteredHTTP()
        let (ann, bob) = try await (server.person("Ann"), server.person("Bob", http))
        try await befriend(ann, bob)
        http.alterations.alter = { operation, answer in operation.utf8.starts(with: "call/".utf8) ? altered(answer) : answer }
        let call = try await ann.call(known(bob.userId, "bob"))
        let incoming = try await bob.nextRinging()
        let code = try await codeOf { try await incoming.answer() }
        XCTAssertEqual(code, "KEY_MEMBERS_REFUSED")
        XCTAssertEqual(incoming.isVerified, false)
        http.alterations.alter = { $1 }
        try await incoming.answer()
        XCTAssertEqual(incoming.isVerified, true)
        try await call.becomes(.active)
        XCTAssertEqual(incoming.fingerprint, call.fingerprint)
        try await call.end()
        await ann.close()
        await bob.close()
    }

    func testANewKeyAsksForNoDevicesThatWereProvedInTheCall() async throws {
        let http = AlteredHTTP()
        let (ann, bob) = try await (server.person("Ann", http), server.person("Bob"))
        try await befriend(ann, bob)
        let call = try await ann.call(known(bob.userId, "bob"))
        try await bob.nextRinging().answer()
        try await call.becomes(.active)
        http.alterations.alter = { operation, answer in
            operation.utf8.starts(with: "user/publicKeys".utf8) ? [:] : answer
        }
        try await call.renewKey()
        XCTAssertEqual(call.key.value?.epoch, 2)
        let bobs = try await known(bob.calls.value.first, "call").key(epoch: 2)
        XCTAssertEqual(bobs.fingerprint, call.fingerprint)
        try await call.end()
        await ann.close()
        await bob.close()
    }

    func testAnInvitationThatTheServerHasKeptIsAnsweredOnceTheUserSaysSo() async throws {
        try await deceived { deceived in
            let call = try await deceived.call()
            let key = try known(call.key.value, "key").key
            let incoming = try await deceived.ring(call, key, sealedAgoMs: 600_000)
            let error = try await failure { try await incoming.answer() }
            XCTAssertEqual(error.code, "INVITATION_OLD")
            XCTAssertGreaterThanOrEqual(try error.members.needNumber("sealedAgoMs"), 600_000)
            XCTAssertEqual(incoming.isVerified, false)
            try await incoming.answer(evenIfOld: true)
            XCTAssertEqual(incoming.isVerified, true)
            XCTAssertEqual(incoming.fingerprint, call.fingerprint)
        }
    }

    func testAKeyIsNotTakenFromAnotherPersonThanTheCaller() async throws {
        try await deceived { deceived in
            let incoming = try await deceived.ring(
                deceived.call(), makeCallKey(), callerId: deceived.stolen.holder.userId + 1)
            let code = try await codeOf { try await incoming.answer() }
            XCTAssertEqual(code, "CALLER_NOT_SEALER")
            XCTAssertEqual(incoming.isVerified, false)
            XCTAssertEqual(incoming.keys, [])
        }
    }

    func testAKeyThatACallHasHadIsNoneOfTheNext() async throws {
        try await deceived { deceived in
            let key = makeCallKey()
            let first = try await deceived.call()
            let answered = try await deceived.ring(first, key)
            try await answered.answer()
            try await answered.end()
            _ = try await first.ended()
            let incoming = try await deceived.ring(deceived.call(), key)
            let code = try await codeOf { try await incoming.answer() }
            XCTAssertEqual(code, "CALL_KEY_REUSED")
            XCTAssertEqual(incoming.keys, [])
        }
    }

    func testAKeyForADeviceOfTheUsersOwnBesideTheirListIsRefused() async throws {
        try await deceived { deceived in
            let storage = MemoryAppStorage()
            let intruder = try await server.app(storage)
            try await server.signIn(intruder, "Bob", deceived.bobsAddress)
            let strange = try await keys(of: intruder, storage).holder
            let wider = try keyMembersOf([deceived.stolen.holder, deceived.bobs, strange])
            let call = try await deceived.call()
            let operation = "call/\(call.callId)"
            deceived.http.alterations.alter = { asked, answer in
                guard asked == operation, var members = answer.object else { return answer }
                members["keySets"] = [["keyMembers": .string(wider)]]
                return .object(members)
            }
            let incoming = try await deceived.ring(call, makeCallKey(), set: wider)
            let error = try await failure { try await incoming.answer() }
            XCTAssertEqual([error.code, error.members.text("name")], ["KEY_MEMBERS_REFUSED", strange.name])
            XCTAssertEqual(incoming.keys, [])
            await intruder.close()
        }
    }

    func testWithoutAListADeviceOfTheUsersOwnIsAskedAboutBeforeTheCallIsAnswered() async throws {
        let ann = try await server.person("Ann")
        let address = server.newAddress("Bob")
        let older = try await Session.open(server.seen(), MemoryAppStorage())
        let sent = try await older.requestCode(email: address, displayName: "Bob")
        _ = try await older.verifyCode(sent.challengeId, server.code(for: address))
        let body: [String: JSONValue] = ["publicKey": .string(SoftwareDeviceKeys.generate().publicKey)]
        let deviceId = try await older.ask("POST", "register_device", body: body).needText("deviceId")
        let bob = try await server.app()
        let bobId = try await server.signIn(bob, "Bob", address)
        try await bob.contacts.request(known(ann.userId, "ann"))
        try await ann.contacts.accept(bobId)
        let call = try await ann.call(bobId)
        let incoming = try await bob.nextRinging()
        let name = "\(bobId)_\(deviceId)"
        let error = try await failure { try await incoming.answer() }
        XCTAssertEqual([error.code, error.members.text("name")], ["OWN_DEVICE_IN_SET", name])
        XCTAssertEqual(incoming.isVerified, false)
        try await incoming.acceptDevice(name)
        try await incoming.answer()
        XCTAssertEqual(incoming.isVerified, true)
        XCTAssertEqual(incoming.fingerprint, call.fingerprint)
        try await call.end()
        await ann.close()
        await bob.close()
    }
}

/// With one octet of a key's hash changed, in each set of an answer.
private func altered(_ answer: JSONValue) -> JSONValue {
    guard var members = answer.object else { return answer }
    if let set = members["keyMembers"]?.string, let octets = base64Octets(set) {
        members["keyMembers"] = .string(encodeBase64(octets.changed(at: octets.count - 1)))
    }
    for name in ["keySets", "items"] {
        if let all = members[name]?.array { members[name] = .array(all.map(altered)) }
    }
    return .object(members)
}
