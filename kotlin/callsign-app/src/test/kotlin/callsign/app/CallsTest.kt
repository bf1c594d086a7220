package callsign.app

import callsign.example.main as firstCall
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.PrintStream
import java.util.Collections
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.combine
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.filterNotNull
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Calls between this package and `@callsign/sdk/app` on the built server; skipped where it is not built. */
@Timeout(120)
class CallsTest {
    private val url get() = server.url

    private suspend fun Callsign.signInAs(name: String): ULong = server.signIn(this, name)

    private suspend fun Participant.signInAs(name: String): ULong =
        text("signIn", server.newAddress(name), name).toULong()

    private class Pair(
        val ann: Callsign,
        val annId: ULong,
        val bob: Participant,
        val bobId: ULong,
        val storage: AppStorage,
    )

    /** Ann in Kotlin and Bob in TypeScript, who are contacts. */
    private fun withFriends(act: suspend Pair.() -> Unit) = runBlocking {
        val storage = MemoryAppStorage()
        val ann = server.app(storage)
        val annId = ann.signInAs("Ann")
        Participant.inTypeScript(url).use { bob ->
            val bobId = bob.signInAs("Bob")
            ann.contacts.requestByLink(bob.text("shareLink"))
            bob.tell("accept", annId)
            Pair(ann, annId, bob, bobId, storage).act()
        }
        ann.close()
    }

    private val annsHttp by lazy { AlteredHttp(url) }

    /** Ann, and Bob's first device with the address that he signs in by; they are contacts. */
    private fun withPhone(act: suspend CoroutineScope.(ann: Callsign, phone: Callsign, address: String) -> Unit) = runBlocking {
        val ann = server.app(http = annsHttp.client)
        server.signIn(ann, "Ann")
        val phone = server.app()
        val address = server.newAddress("Bob")
        server.signIn(phone, "Bob", address)
        befriend(ann, phone)
        act(ann, phone, address)
        ann.close()
        phone.close()
    }

    @Test
    fun `both call each other, with verified keys and one fingerprint`() = withFriends {
        val call = ann.call(bobId)
        val callId = bob.text("ringing")
        assertEquals(call.callId, callId)
        val answered = bob.view("answer", callId)
        call.state.first { it == CallState.ACTIVE }
        assertEquals(call.fingerprint, answered.text("fingerprint"))
        assertEquals("true", answered.text("isVerified"))
        assertEquals(setOf(annId, bobId), call.sealedFor.map { it.userId }.toSet())
        assertTrue(KeyDevice(annId, checkNotNull(ann.deviceId)) in call.sealedFor)
        call.end()
        assertEquals(emptyList<KeyDevice>(), call.sealedFor)
        assertEquals(CallEnding.HANGUP, call.ending)
        assertNull(call.fingerprint)

        val back = bob.view("call", annId)
        val ringing = ann.ringing.first()
        ringing.answer()
        assertEquals(true, ringing.isVerified)
        assertEquals(back.text("fingerprint"), ringing.fingerprint)
        bob.tell("end", ringing.callId)
        assertEquals(CallEnding.HANGUP, ringing.ended())
        assertEquals(ann.contacts.comparisonCode(bobId), bob.text("code", annId))
        assertEquals("[]", bob.tell("keyEvents").toString())
    }

    @Test
    fun `who is no contact can not be called or invited, and is named`() = withFriends {
        val cat = server.app()
        val catId = cat.signInAs("Cat")
        val call = ann.call(bobId)
        for (act in listOf<suspend () -> Unit>({ call.invite(listOf(catId)) }, { cat.call(listOf(bobId)) })) {
            val error = runCatching { act() }.exceptionOrNull() as CallsignException
            assertEquals("CALLEE_NOT_CONTACT", error.code)
            assertEquals(1, error.members.texts("calleeIds").size)
        }
        call.end()
        cat.close()
    }

    @Test
    fun `a callee whose app is closed and takes no pushes is unreachable`() = withPhone { ann, phone, _ ->
        val bobId = checkNotNull(phone.userId)
        phone.close()
        val call = ann.call(listOf(bobId))
        val bob = call.participants.first { people -> people.any { it.isUnreachable } }.single { it.isUnreachable }
        assertEquals(bobId to ParticipantState.INVITED, bob.userId to bob.state)
        call.end()
    }

    @Test
    fun `the host's new key reaches the other side, whichever it is`() = withFriends {
        val call = ann.call(bobId)
        bob.view("answer", bob.text("ringing"))
        call.state.first { it == CallState.ACTIVE }
        val first = call.fingerprint
        call.renewKey()
        assertNotEquals(first, call.fingerprint)
        assertEquals(2, call.key.value?.epoch)
        assertEquals(call.fingerprint, bob.view("until", call.callId, "active", 2).text("fingerprint"))
        assertEquals(listOf(2L, 1L), call.keys.map { it.epoch })
        call.end()

        val back = bob.text("start", annId)
        val ringing = ann.ringing.first()
        ringing.answer()
        bob.view("until", back, "active")
        bob.tell("renewKey", back)
        val newest = ringing.key.filterNotNull().first { it.epoch == 2L }
        assertEquals(newest.fingerprint, bob.view("until", back, "active", 2).text("fingerprint"))
        ringing.leave()
        assertEquals(CallEnding.LEFT, ringing.ending)
    }

    @Test
    fun `an app that restarts in a call comes back into it with the key of the other side`() = withFriends {
        val call = ann.call(bobId)
        bob.view("answer", bob.text("ringing"))
        call.state.first { it == CallState.ACTIVE }
        val fingerprint = call.fingerprint
        ann.close()
        assertEquals(CallEnding.LEFT, call.ending)

        val again = server.app(storage)
        assertEquals(annId, again.resume())
        val resumed = again.calls.first { it.isNotEmpty() }.single()
        assertEquals(call.callId, resumed.callId)
        resumed.state.first { it == CallState.ACTIVE }
        assertEquals(fingerprint, resumed.key.filterNotNull().first().fingerprint)

        bob.tell("close")
        bob.tell("resume")
        assertEquals(fingerprint, bob.view("until", call.callId, "active", 1).text("fingerprint"))
        resumed.end()
        assertEquals("hangup", bob.text("ending", call.callId))
        again.close()
    }

    @Test
    fun `the host makes a new key when no device has the old one any more`() = withFriends {
        val call = ann.call(bobId)
        bob.view("answer", bob.text("ringing"))
        call.state.first { it == CallState.ACTIVE }
        val lost = call.fingerprint
        bob.tell("close")
        ann.close()
        val again = server.app(storage)
        again.resume()
        val resumed = again.calls.first { it.isNotEmpty() }.single()
        resumed.state.first { it == CallState.REJOINING }
        bob.tell("resume")
        val key = resumed.key.filterNotNull().first()
        assertEquals(2, key.epoch)
        assertNotEquals(lost, key.fingerprint)
        assertEquals(key.fingerprint, bob.view("until", call.callId, "active", 2).text("fingerprint"))
        resumed.end()
        again.close()
    }

    @Test
    fun `all start again, and the host makes a new key as soon as no device has one`() = withFriends {
        val call = ann.call(bobId)
        bob.view("answer", bob.text("ringing"))
        call.state.first { it == CallState.ACTIVE }
        val lost = call.fingerprint
        bob.tell("close")
        ann.close()
        bob.tell("resume")
        bob.tell("asking", call.callId)
        val http = AlteredHttp(url)
        // Else it would ask in vain, for as long as the server says.
        http.alter = { operation, answer ->
            if (operation.endsWith("/request-rejoin")) JsonObject(mapOf("expiresIn" to JsonPrimitive(3_600))) else answer
        }
        val again = server.app(storage, http.client)
        again.resume()
        val resumed = again.calls.first { it.isNotEmpty() }.single()
        resumed.state.first { it == CallState.ACTIVE }
        assertNotEquals(lost, resumed.fingerprint)
        assertEquals(resumed.fingerprint, bob.view("until", call.callId, "active", 2).text("fingerprint"))
        resumed.end()
        again.close()
    }

    @Test
    fun `a call outlasts a lost network, and a key that was made meanwhile arrives, once`() = runBlocking {
        BreakableNetwork(url).use { network ->
            val cat = server.app(through = network.url)
            val catId = cat.signInAs("Cat")
            Participant.inTypeScript(url).use { bob ->
                val bobId = bob.signInAs("Bob")
                bob.tell("befriendByLink", cat.contacts.shareLink())
                cat.contacts.accept(bobId)
                val callId = bob.text("start", catId)
                val call = cat.ringing.first()
                call.answer()
                val messages = Collections.synchronizedList(mutableListOf<JsonObject>())
                val collecting = launch(start = CoroutineStart.UNDISPATCHED) {
                    cat.events.filterIsInstance<CallsignEvent.Message>().collect { messages += it.members }
                }
                network.cut()
                cat.connection.first { it == ConnectionState.CONNECTING }
                bob.tell("renewKey", callId)
                assertEquals(1, call.key.value?.epoch)
                network.restore()
                cat.connect()
                val renewed = call.key.filterNotNull().first { it.epoch == 2L }
                assertEquals(bob.view("until", callId, "active", 2).text("fingerprint"), renewed.fingerprint)
                assertEquals(CallState.ACTIVE, call.state.value)
                network.cut()
                network.restore()
                bob.tell("end", callId)
                assertEquals(CallEnding.HANGUP, call.ended())
                collecting.cancel()
                assertEquals(messages.map { it.text("eventId") }.distinct().size, messages.size)
            }
            cat.close()
        }
    }

    @Test
    fun `a third person is invited, and the key changes after one has left`() = withFriends {
        val cat = server.app()
        val catId = cat.signInAs("Cat")
        cat.contacts.request(annId)
        ann.contacts.accept(catId)
        val call = ann.call(listOf(bobId), isVideo = true)
        bob.view("answer", bob.text("ringing"))
        call.state.first { it == CallState.ACTIVE }
        call.invite(listOf(catId))
        val cats = cat.ringing.first()
        assertTrue(cats.isOnGoing && cats.isVideo)
        cats.answer()
        assertEquals(call.fingerprint, cats.fingerprint)
        // A person who comes opens nothing of before.
        assertEquals(listOf(2L), cats.keys.map { it.epoch })
        assertEquals(cats.fingerprint, bob.view("until", call.callId, "active", 2).text("fingerprint"))
        call.resendKey()
        bob.tell("leave", call.callId)
        val renewed = cats.key.filterNotNull().first { it.epoch == 3L }
        assertEquals(renewed.fingerprint, call.key.filterNotNull().first { it.epoch == 3L }.fingerprint)
        call.end()
        cats.ended()
        cat.close()
    }

    @Test
    fun `a person who is removed gets no key that is made after it`() = withFriends {
        val cat = server.app()
        val catId = cat.signInAs("Cat")
        cat.contacts.request(annId)
        ann.contacts.accept(catId)
        val call = ann.call(listOf(bobId, catId))
        bob.view("answer", bob.text("ringing"))
        val cats = cat.ringing.first()
        cats.answer()
        call.participants.first { all -> all.count { it.state == ParticipantState.JOINED } == 3 }
        call.remove(catId)
        assertEquals(CallEnding.REMOVED, cats.ended())
        val renewed = call.key.filterNotNull().first { it.epoch == 2L }
        assertEquals(renewed.fingerprint, bob.view("until", call.callId, "active", 2).text("fingerprint"))
        assertEquals(2L, call.sendingKey.value?.epoch)
        call.end()
        cat.close()
    }

    @Test
    fun `a call rings at a phone whose clock is a day ahead`() = withFriends {
        val ahead = Server(url, nowMs = { System.currentTimeMillis() + 86_400_000 })
        val cat = Callsign(ahead, developmentPins(url), MemoryAppStorage())
        val catId = cat.signInAs("Cat")
        cat.contacts.request(bobId)
        bob.tell("accept", catId)
        val back = bob.text("start", catId)
        val ringing = cat.ringing.first()
        ringing.answer()
        bob.view("until", back, "active")
        ringing.end()
        cat.close()
    }

    @Test
    fun `a call moves to another device of the user, and back with a key that a person gives`() = withPhone { ann, phone, address ->
        val laptop = server.approvedDevice(phone, address)
        val call = ann.call(checkNotNull(phone.userId))
        val onPhone = phone.ringing.first()
        val onLaptop = laptop.ringing.first()
        onPhone.answer()
        assertEquals(CallEnding.ANSWERED_ELSEWHERE, onLaptop.ended())
        val moved = laptop.join(call.callId)
        assertEquals(CallEnding.MOVED, onPhone.ended())
        moved.state.first { it == CallState.ACTIVE }
        assertEquals(call.fingerprint, moved.fingerprint)
        moved.leave()
        // A server could make up such a device: the person here is asked.
        val asked = async(start = CoroutineStart.UNDISPATCHED) { call.events.filterIsInstance<CallEvent.KeyAsked>().first() }
        val back = phone.join(call.callId)
        val ask = asked.await().ask
        assertEquals(phone.userId to phone.deviceId, ask.userId to ask.deviceId)
        call.grantKey(ask)
        back.state.first { it == CallState.ACTIVE }
        // The host makes a new key meanwhile, as a person has left.
        combine(call.key, back.key) { anns, bobs -> anns != null && anns.fingerprint == bobs?.fingerprint }.first { it }
        call.end()
        laptop.close()
    }

    @Test
    fun `a device that is approved while a call is sealed rings, too`() = withPhone { ann, phone, address ->
        val laptop = CompletableDeferred<Callsign>()
        var starts = 0
        annsHttp.before = {
            if (it == "call/start" && starts++ == 0) laptop.complete(runBlocking { server.approvedDevice(phone, address) })
        }
        val call = ann.call(checkNotNull(phone.userId))
        assertEquals(2, starts)
        assertEquals(call.callId, laptop.await().ringing.first().callId)
        assertEquals(call.callId, phone.ringing.first().callId)
        call.end()
        laptop.await().close()
    }

    @Test
    fun `a call that is declined has ended for both`() = withFriends {
        val back = bob.text("start", annId)
        ann.ringing.first().decline(DeclineReason.BUSY)
        assertEquals("declined", bob.text("ending", back))
        assertEquals(emptyList<Call>(), ann.calls.value)
    }

    @Test
    fun `the first program calls a person and is called back`() = runBlocking {
        Participant.inTypeScript(url).use { bob ->
            val bobId = bob.signInAs("Bob")
            val printed = ByteArrayOutputStream()
            val out = System.out
            System.setOut(PrintStream(printed, true))
            try {
                val program = async(Dispatchers.IO) { firstCall(arrayOf(url, "$bobId")) }
                val kimId = bob.text("acceptFirst")
                val called = bob.view("answer", bob.text("ringing"))
                bob.tell("end", called.needText("callId"))
                val back = bob.view("call", kimId)
                program.await()
                val first = "called: ${called.text("fingerprint")}"
                val second = "called back: ${back.text("fingerprint")}, verified: true"
                assertEquals("$first\n$second\n", printed.toString())
            } finally {
                System.setOut(out)
            }
        }
    }

    @Test
    fun `the README shows the first program`() {
        val kotlin = generateSequence(File("").absoluteFile, File::getParentFile).first { File(it, "callsign-app").isDirectory }
        val program = File(kotlin, "callsign-app/src/test/kotlin/callsign/example/FirstCall.kt").readText()
        assertTrue(program.lines().size <= 41)
        assertTrue("```kotlin\n$program```" in File(kotlin, "README.md").readText())
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
