import CallsignVerify
import TestSupport
import XCTest

@testable import CallsignApp

/// Calls between this package and `@callsign/sdk/app`.
final class CallsTests: ServedTests {
    private struct Friends {
        let ann: Callsign
        let annId: UInt64
        let bob: TypeScriptParticipant
        let bobId: UInt64
        let storage: MemoryAppStorage
    }

    /// Ann in Swift and Bob in TypeScript, who are contacts.
    private func withFriends(_ act: (Friends) async throws -> Void) async throws {
        let storage = MemoryAppStorage()
        let ann = try await server.app(storage)
        let annId = try await server.signIn(ann, "Ann")
        let bob = try TypeScriptParticipant(server.url)
        defer { bob.close() }
        let bobId = try await signIn(bob, "Bob")
        try await ann.contacts.requestByLink(bob.text("shareLink"))
        try await bob.tell("accept", id(annId))
        try await act(Friends(ann: ann, annId: annId, bob: bob, bobId: bobId, storage: storage))
        await ann.close()
    }

    private func signIn(_ participant: TypeScriptParticipant, _ name: String) async throws -> UInt64 {
        let userId = try await participant.text("signIn", .string(server.newAddress(name)), .string(name))
        return try known(UInt64(userId), userId)
    }

    private func id(_ number: UInt64) -> JSONValue { .string("\(number)") }

    /// Ann calls, and Bob answers.
    private func inCall(_ friends: Friends) async throws -> Call {
        let call = try await friends.ann.call(friends.bobId)
        _ = try await friends.bob.view("answer", .string(friends.bob.text("ringing")))
        try await call.becomes(.active)
        return call
    }

    private func until(_ bob: TypeScriptParticipant, _ callId: String, epoch: Int = 0) async throws -> String? {
        try await bob.view("until", .string(callId), "active", JSONValue(epoch)).textOrNil("fingerprint")
    }

    func testBothCallEachOtherWithVerifiedKeysAndOneFingerprint() async throws {
        try await withFriends { friends in
            let (ann, bob) = (friends.ann, friends.bob)
            let call = try await ann.call(friends.bobId)
            let callId = try await bob.text("ringing")
            XCTAssertEqual(call.callId, callId)
            let answered = try await bob.view("answer", .string(callId))
            try await call.becomes(.active)
            XCTAssertEqual(call.fingerprint, try answered.text("fingerprint"))
            XCTAssertEqual(call.fingerprint?.utf8.count, 35)
            XCTAssertTrue(try answered.flag("isVerified"))
            XCTAssertEqual(Set(call.sealedFor.map(\.userId)), [friends.annId, friends.bobId])
            let own = KeyDevice(userId: friends.annId, deviceId: try known(ann.deviceId, "deviceId"))
            XCTAssertTrue(call.sealedFor.contains(own))
            try await call.end()
            XCTAssertEqual(call.sealedFor, [])
            XCTAssertEqual(call.ending, .hangup)
            XCTAssertNil(call.fingerprint)

            let back = try await bob.view("call", id(friends.annId))
            let ringing = try await ann.nextRinging()
            try await ringing.answer()
            XCTAssertEqual(ringing.isVerified, true)
            XCTAssertEqual(ringing.fingerprint, try back.text("fingerprint"))
            try await bob.tell("end", .string(ringing.callId))
            let ending = try await ringing.ended()
            XCTAssertEqual(ending, .hangup)
            let (mine, theirs) = (
                try await ann.contacts.comparisonCode(friends.bobId), try await bob.text("code", id(friends.annId))
            )
            XCTAssertEqual(mine, theirs)
            let events = try await bob.tell("keyEvents")
            XCTAssertEqual(events, [])
        }
    }

    func testWhoIsNoContactCanNotBeCalledOrInvitedAndIsNamed() async throws {
        try await withFriends { friends in
            let cat = try await server.app()
            let catId = try await server.signIn(cat, "Cat")
            let call = try await friends.ann.call(friends.bobId)
            let invited = try await failure { try await call.invite([catId]) }
            let called = try await failure { _ = try await cat.call(friends.bobId) }
            for error in [invited, called] {
                XCTAssertEqual(error.code, "CALLEE_NOT_CONTACT")
                XCTAssertEqual(try error.members.texts("calleeIds").count, 1)
            }
            try await call.end()
            await cat.close()
        }
    }

    func testTheHostsNewKeyReachesTheOtherSideWhicheverItIs() async throws {
        try await withFriends { friends in
            let (ann, bob) = (friends.ann, friends.bob)
            let call = try await inCall(friends)
            let first = call.fingerprint
            try await call.renewKey()
            XCTAssertNotEqual(first, call.fingerprint)
            XCTAssertEqual(call.key.value?.epoch, 2)
            let bobs = try await until(bob, call.callId, epoch: 2)
            XCTAssertEqual(call.fingerprint, bobs)
            XCTAssertEqual(call.keys.map(\.epoch), [2, 1])
            try await call.end()

            let back = try await bob.text("start", id(friends.annId))
            let ringing = try await ann.nextRinging()
            try await ringing.answer()
            _ = try await until(bob, back)
            try await bob.tell("renewKey", .string(back))
            let newest = try await ringing.key(epoch: 2)
            let theirs = try await until(bob, back, epoch: 2)
            XCTAssertEqual(newest.fingerprint, theirs)
            try await ringing.leave()
            XCTAssertEqual(ringing.ending, .left)
        }
    }

    func testAnAppThatRestartsInACallComesBackIntoItWithTheKeyOfTheOtherSide() async throws {
        try await withFriends { friends in
            let bob = friends.bob
            let call = try await inCall(friends)
            let fingerprint = call.fingerprint
            await friends.ann.close()
            XCTAssertEqual(call.ending, .left)

            let again = try await server.app(friends.storage)
            let userId = try await again.resume()
            XCTAssertEqual(userId, friends.annId)
            let resumed = try known(await again.calls.first { !$0.isEmpty }.first, "call")
            XCTAssertEqual(resumed.callId, call.callId)
            try await resumed.becomes(.active)
            let held = try await resumed.key(epoch: 1)
            XCTAssertEqual(held.fingerprint, fingerprint)

            try await bob.tell("close")
            try await bob.tell("resume")
            let bobs = try await until(bob, call.callId, epoch: 1)
            XCTAssertEqual(bobs, fingerprint)
            try await resumed.end()
            let ending = try await bob.text("ending", .string(call.callId))
            XCTAssertEqual(ending, "hangup")
            await again.close()
        }
    }

    func testTheHostMakesANewKeyWhenNoDeviceHasTheOldOneAnyMore() async throws {
        try await withFriends { friends in
            let bob = friends.bob
            let call = try await inCall(friends)
            let lost = call.fingerprint
            try await bob.tell("close")
            await friends.ann.close()
            let again = try await server.app(friends.storage)
            try await again.resume()
            let resumed = try known(await again.calls.first { !$0.isEmpty }.first, "call")
            try await resumed.becomes(.rejoining)
            try await bob.tell("resume")
            let key = try await resumed.key(epoch: 2)
            XCTAssertNotEqual(key.fingerprint, lost)
            let bobs = try await until(bob, call.callId, epoch: 2)
            XCTAssertEqual(bobs, key.fingerprint)
            try await resumed.end()
            await again.close()
        }
    }

    func testACallOutlastsALostNetworkAndAKeyThatWasMadeMeanwhileArrivesOnce() async throws {
        let network = BreakableNetwork(server)
        let cat = try await server.app(by: network)
        let catId = try await server.signIn(cat, "Cat")
        let bob = try TypeScriptParticipant(server.url)
        defer { bob.close() }
        let bobId = try await signIn(bob, "Bob")
        try await bob.tell("befriendByLink", .string(cat.contacts.shareLink()))
        try await cat.contacts.accept(bobId)
        let callId = try await bob.text("start", id(catId))
        let call = try await cat.nextRinging()
        try await call.answer()
        let messages = Locked<[String]>([])
        let events = cat.events
        let collecting = Task {
            for await case .message(_, let members) in events {
                if let eventId = members.text("eventId") { messages.with { $0.append(eventId) } }
            }
        }
        network.cut()
        try await cat.connection.first { $0 == .connecting }
        try await bob.tell("renewKey", .string(callId))
        XCTAssertEqual(call.key.value?.epoch, 1)
        network.restore()
        try await cat.connect()
        let renewed = try await call.key(epoch: 2)
        let bobs = try await until(bob, callId, epoch: 2)
        XCTAssertEqual(bobs, renewed.fingerprint)
        XCTAssertEqual(call.state.value, .active)
        network.cut()
        network.restore()
        try await bob.tell("end", .string(callId))
        let ending = try await call.ended()
        XCTAssertEqual(ending, .hangup)
        collecting.cancel()
        let told = messages.with { $0 }
        XCTAssertEqual(Set(told).count, told.count)
        await cat.close()
    }

    func testAThirdPersonIsInvitedAndTheKeyChangesAfterOneHasLeft() async throws {
        try await withFriends { friends in
            let (ann, bob) = (friends.ann, friends.bob)
            let cat = try await server.app()
            let catId = try await server.signIn(cat, "Cat")
            try await cat.contacts.request(friends.annId)
            try await ann.contacts.accept(catId)
            let call = try await ann.call([friends.bobId], isVideo: true)
            _ = try await bob.view("answer", .string(bob.text("ringing")))
            try await call.becomes(.active)
            try await call.invite([catId])
            let cats = try await cat.nextRinging()
            XCTAssertTrue(cats.isOnGoing && cats.isVideo)
            try await cats.answer()
            XCTAssertEqual(call.fingerprint, cats.fingerprint)
            // A person who comes opens nothing of before.
            XCTAssertEqual(cats.keys.map(\.epoch), [2])
            let bobs = try await until(bob, call.callId, epoch: 2)
            XCTAssertEqual(cats.fingerprint, bobs)
            try await call.resendKey()
            try await bob.tell("leave", .string(call.callId))
            let (one, other) = (try await cats.key(epoch: 3), try await call.key(epoch: 3))
            XCTAssertEqual(one.fingerprint, other.fingerprint)
            try await call.end()
            _ = try await cats.ended()
            await cat.close()
        }
    }

    func testAPersonWhoIsRemovedGetsNoKeyThatIsMadeAfterIt() async throws {
        try await withFriends { friends in
            let (ann, bob) = (friends.ann, friends.bob)
            let cat = try await server.app()
            let catId = try await server.signIn(cat, "Cat")
            try await cat.contacts.request(friends.annId)
            try await ann.contacts.accept(catId)
            let call = try await ann.call([friends.bobId, catId])
            _ = try await bob.view("answer", .string(bob.text("ringing")))
            let cats = try await cat.nextRinging()
            try await cats.answer()
            try await call.participants.first { all in all.count { $0.state == .joined } == 3 }
            try await call.remove(catId)
            let ending = try await cats.ended()
            XCTAssertEqual(ending, .removed)
            let renewed = try await call.key(epoch: 2)
            let bobs = try await until(bob, call.callId, epoch: 2)
            XCTAssertEqual(bobs, renewed.fingerprint)
            XCTAssertEqual(call.sendingKey.value?.epoch, 2)
            try await call.end()
            await cat.close()
        }
    }

    func testACallRingsAtAPhoneWhoseClockIsADayAhead() async throws {
        try await withFriends { friends in
            let bob = friends.bob
            let ahead = try server.seen(nowMs: { systemTimeMs() + 86_400_000 })
            let cat = Callsign(server: ahead, pins: try await developmentPins(server.url), storage: MemoryAppStorage())
            let catId = try await server.signIn(cat, "Cat")
            try await cat.contacts.request(friends.bobId)
            try await bob.tell("accept", id(catId))
            let back = try await bob.text("start", id(catId))
            let ringing = try await cat.nextRinging()
            try await ringing.answer()
            _ = try await until(bob, back)
            try await ringing.end()
            await cat.close()
        }
    }

    func testACallThatIsDeclinedHasEndedForBoth() async throws {
        try await withFriends { friends in
            let back = try await friends.bob.text("start", id(friends.annId))
            try await friends.ann.nextRinging().decline(.busy)
            let ending = try await friends.bob.text("ending", .string(back))
            XCTAssertEqual(ending, "declined")
            XCTAssertTrue(friends.ann.calls.value.isEmpty)
        }
    }

    func testAllStartAgainAndTheHostMakesANewKeyAsSoonAsNoDeviceHasOne() async throws {
        try await withFriends { friends in
            let bob = friends.bob
            let call = try await inCall(friends)
            let lost = call.fingerprint
            try await bob.tell("close")
            await friends.ann.close()
            try await bob.tell("resume")
            try await bob.tell("asking", .string(call.callId))
            let http = AlteredHTTP()
            // Else it would ask in vain, for as long as the server says.
            http.alterations.alter = { operation, answer in
                operation.hasSuffix("/request-rejoin") ? ["expiresIn": 3_600] : answer
            }
            let again = try await server.app(friends.storage, http)
            try await again.resume()
            let resumed = try known(await again.calls.first { !$0.isEmpty }.first, "call")
            try await resumed.becomes(.active)
            XCTAssertNotEqual(lost, resumed.fingerprint)
            let bobs = try await until(bob, call.callId, epoch: 2)
            XCTAssertEqual(bobs, resumed.fingerprint)
            try await resumed.end()
            await again.close()
        }
    }
}
