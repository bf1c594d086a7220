package callsign.app

import callsign.verify.CallKeyContent
import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import callsign.verify.packCallKey
import java.time.Instant
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** A server that lies about a call's key, and about the devices that it is for; skipped where it is not built. */
@Timeout(120)
class KeySetsTest {
    private suspend fun failureOf(act: suspend () -> Unit): CallsignException = try {
        act()
        error("it did not fail")
    } catch (error: CallsignException) {
        error
    }

    private suspend fun codeOf(act: suspend () -> Unit): String = failureOf(act).code

    /** A server that has Ann's keys, and tells Bob what it likes: by pushes, and in answers that [http] alters. */
    private class Deceived(
        val ann: Callsign,
        val stolen: OwnKeyHolder,
        val bob: Callsign,
        val bobs: KeyHolder,
        val bobsAddress: String,
        val http: AlteredHttp,
    ) {
        val set = keyMembersOf(listOf(stolen.holder, bobs))

        suspend fun call(): Call = ann.call(bobs.userId)

        /** Gives the call as it rings at Bob, with a key that Ann's device has sealed. */
        suspend fun ring(
            call: Call,
            key: ByteArray,
            set: String = this.set,
            sealedAgoMs: Long = 0,
            callerId: ULong = stolen.holder.userId,
        ): Call {
            val nowMs = System.currentTimeMillis()
            val content = packCallKey(CallKeyContent(key, hashOfSet(set), nowMs - sealedAgoMs))
            val members = mapOf(
                "type" to "call_invitation",
                "eventId" to call.callId,
                "deviceId" to "${bobs.deviceId}",
                "callId" to call.callId,
                "callerId" to "$callerId",
                "encryptedAESKey" to sealCallKey(content, stolen, bobs, KeyBinding(call.callId, 1)),
                "keyEpoch" to "1",
                "keyFromUserId" to "${stolen.holder.userId}",
                "keyFromDeviceId" to "${stolen.holder.deviceId}",
                "sentAt" to "$nowMs",
                "expiresAt" to "${Instant.ofEpochMilli(nowMs + 60_000)}",
            )
            bob.onPush(members)
            return bob.ringing.first { it.callId == call.callId }
        }
    }

    private suspend fun keysOf(app: Callsign, storage: AppStorage): OwnKeyHolder {
        val userId = checkNotNull(app.userId)
        return OwnKeyHolder(userId, checkNotNull(app.deviceId), softwareKeys(storage).of(userId))
    }

    private fun deceived(act: suspend Deceived.() -> Unit) = runBlocking {
        val (annsStorage, bobsStorage) = List(2) { MemoryAppStorage() }
        val ann = server.app(annsStorage)
        server.signIn(ann, "Ann")
        BreakableNetwork(server.url).use { network ->
            val http = AlteredHttp(server.url)
            val bob = server.app(bobsStorage, http.client, network.url)
            val address = server.newAddress("Bob")
            server.signIn(bob, "Bob", address)
            befriend(ann, bob)
            // No true invitation comes by the socket.
            network.cut()
            bob.connection.first { it == ConnectionState.CONNECTING }
            Deceived(ann, keysOf(ann, annsStorage), bob, keysOf(bob, bobsStorage).holder, address, http).act()
            bob.close()
        }
        ann.close()
    }

    /** With one octet of a key's hash changed, in each set of an answer. */
    private fun altered(answer: JsonObject): JsonObject = JsonObject(
        answer.mapValues { (name, value) ->
            when (name) {
                "keyMembers" -> JsonPrimitive(alteredSet((value as JsonPrimitive).content))
                "keySets", "items" -> JsonArray((value as JsonArray).map { altered(it as JsonObject) })
                else -> value
            }
        },
    )

    private fun alteredSet(set: String): String =
        encodeBase64(decodeBase64(set).also { it[it.size - 1] = (it[it.size - 1].toInt() xor 1).toByte() })

    @Test
    fun `a set that was altered on the way is refused, and the true one is taken`() = runBlocking {
        val ann = server.app()
        server.signIn(ann, "Ann")
        val http = AlteredHttp(server.url)
        val bob = server.app(http = http.client)
        val bobId = server.signIn(bob, "Bob")
        befriend(ann, bob)
        http.alter = { operation, answer -> if (operation.startsWith("call/")) altered(answer) else answer }
        val call = ann.call(bobId)
        val incoming = bob.ringing.first()
        assertEquals("KEY_MEMBERS_REFUSED", codeOf { incoming.answer() })
        assertEquals(false, incoming.isVerified)
        http.alter = { _, answer -> answer }
        incoming.answer()
        assertEquals(true, incoming.isVerified)
        call.state.first { it == CallState.ACTIVE }
        assertEquals(call.fingerprint, incoming.fingerprint)
        call.end()
        ann.close()
        bob.close()
    }

    @Test
    fun `a new key asks for no devices that were proved in the call`() = runBlocking {
        val http = AlteredHttp(server.url)
        val ann = server.app(http = http.client)
        server.signIn(ann, "Ann")
        val bob = server.app()
        val bobId = server.signIn(bob, "Bob")
        befriend(ann, bob)
        val call = ann.call(bobId)
        bob.ringing.first().answer()
        call.state.first { it == CallState.ACTIVE }
        http.alter = { operation, answer ->
            if (operation.startsWith("user/publicKeys")) JsonObject(emptyMap()) else answer
        }
        call.renewKey()
        assertEquals(2L, call.key.value?.epoch)
        assertEquals(call.fingerprint, bob.calls.value.single().key.first { it?.epoch == 2L }?.fingerprint)
        call.end()
        ann.close()
        bob.close()
    }

    @Test
    fun `an invitation that the server has kept is answered once the user says so`() = deceived {
        val call = call()
        val incoming = ring(call, checkNotNull(call.key.value).key, sealedAgoMs = 600_000)
        val failure = failureOf { incoming.answer() }
        assertEquals("INVITATION_OLD", failure.code)
        assertTrue(failure.members.needNumber("sealedAgoMs") >= 600_000)
        assertEquals(false, incoming.isVerified)
        incoming.answer(evenIfOld = true)
        assertEquals(true, incoming.isVerified)
        assertEquals(call.fingerprint, incoming.fingerprint)
    }

    @Test
    fun `a key is not taken from another person than the caller`() = deceived {
        val incoming = ring(call(), makeCallKey(), callerId = stolen.holder.userId + 1u)
        assertEquals("CALLER_NOT_SEALER", codeOf { incoming.answer() })
        assertEquals(false, incoming.isVerified)
        assertEquals(emptyList<EpochKey>(), incoming.keys)
    }

    @Test
    fun `a key that a call has had is none of the next`() = deceived {
        val key = makeCallKey()
        val first = call()
        val answered = ring(first, key.copyOf())
        answered.answer()
        answered.end()
        first.ended()
        val incoming = ring(call(), key)
        assertEquals("CALL_KEY_REUSED", codeOf { incoming.answer() })
        assertEquals(emptyList<EpochKey>(), incoming.keys)
    }

    @Test
    fun `a key for a device of the user's own beside their list is refused`() = deceived {
        val storage = MemoryAppStorage()
        val intruder = server.app(storage)
        server.signIn(intruder, "Bob", bobsAddress)
        val strange = keysOf(intruder, storage).holder
        val wider = keyMembersOf(listOf(stolen.holder, bobs, strange))
        val call = call()
        http.alter = { operation, answer ->
            val sets = JsonArray(listOf(JsonObject(mapOf("keyMembers" to JsonPrimitive(wider)))))
            if (operation == "call/${call.callId}") JsonObject(answer + ("keySets" to sets)) else answer
        }
        val incoming = ring(call, makeCallKey(), wider)
        val failure = failureOf { incoming.answer() }
        assertEquals("KEY_MEMBERS_REFUSED" to strange.name, failure.code to failure.members.text("name"))
        assertEquals(emptyList<EpochKey>(), incoming.keys)
        intruder.close()
    }

    @Test
    fun `without a list, a device of the user's own is asked about before the call is answered`() = runBlocking {
        val ann = server.app()
        val annId = server.signIn(ann, "Ann")
        val address = server.newAddress("Bob")
        val older = Session.open(Server(server.url), MemoryAppStorage())
        older.verifyCode(older.requestCode(address, "Bob").challengeId, server.codeFor(address))
        val body = bodyOf(mapOf("publicKey" to JcaDeviceKeys.generate().publicKey))
        val deviceId = older.ask("POST", "register_device", body).needText("deviceId")
        val bob = server.app()
        val bobId = server.signIn(bob, "Bob", address)
        bob.contacts.request(annId)
        ann.contacts.accept(bobId)
        val call = ann.call(bobId)
        val incoming = bob.ringing.first()
        val name = "${bobId}_$deviceId"
        val failure = failureOf { incoming.answer() }
        assertEquals("OWN_DEVICE_IN_SET" to name, failure.code to failure.members.text("name"))
        assertEquals(false, incoming.isVerified)
        incoming.acceptDevice(name)
        incoming.answer()
        assertEquals(true, incoming.isVerified)
        assertEquals(call.fingerprint, incoming.fingerprint)
        call.end()
        ann.close()
        bob.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
