package callsign.app

import java.util.Collections
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.combine
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Events that come to a device while a request of its own is under way, and requests that fail once. */
@Timeout(120)
class RacesTest {
    private val http by lazy { AlteredHttp(server.url) }
    private val apps = mutableListOf<Callsign>()

    private fun racing(act: suspend CoroutineScope.() -> Unit) = runBlocking {
        act()
        for (app in apps) app.close()
    }

    /** One run of an app; its requests go by [http] where it is [altered]. */
    private suspend fun app(storage: AppStorage, altered: AlteredHttp? = null, through: String = server.url): Callsign {
        val app = if (altered == null) server.app(storage, through = through) else server.app(storage, altered.client, through)
        apps += app
        return app
    }

    private suspend fun person(
        name: String,
        altered: AlteredHttp? = null,
        through: String = server.url,
        storage: AppStorage = MemoryAppStorage(),
        address: String = server.newAddress(name),
    ): Callsign = app(storage, altered, through).also { server.signIn(it, name, address) }

    private class Devices(val ann: Callsign, val phone: Callsign, val laptop: Callsign)

    /** Bob has two devices, and Ann as a contact. The requests of his laptop go by [http]. */
    private suspend fun devices(): Devices {
        val address = server.newAddress("Bob")
        val ann = person("Ann")
        val phone = person("Bob", address = address)
        befriend(ann, phone)
        val laptop = server.approvedDevice(phone, address, http.client)
        apps += laptop
        return Devices(ann, phone, laptop)
    }

    private suspend fun inCall(ann: Callsign, bob: Callsign): Pair<Call, Call> {
        befriend(ann, bob)
        val call = ann.call(checkNotNull(bob.userId))
        val bobs = bob.ringing.first()
        bobs.answer()
        call.state.first { it == CallState.ACTIVE }
        return call to bobs
    }

    private suspend fun invited(call: Call, ann: Callsign, cat: Callsign): Call {
        befriend(ann, cat)
        call.invite(listOf(checkNotNull(cat.userId)))
        return cat.ringing.first()
    }

    private suspend fun codeOf(act: suspend () -> Unit): String? = try {
        act()
        null
    } catch (error: CallsignException) {
        error.code
    }

    private fun <Value> CoroutineScope.begun(act: suspend () -> Value): Deferred<Value> =
        async(start = CoroutineStart.UNDISPATCHED) { act() }

    private suspend fun Call.failed(): String = events.filterIsInstance<CallEvent.Failed>().first().error.code

    private suspend fun haveOneKey(one: Call, other: Call) {
        val areSame: Flow<Boolean> =
            combine(one.key, other.key) { first, second -> first != null && first.fingerprint == second?.fingerprint }
        areSame.first { it }
    }

    private suspend fun Callsign.reconnect(network: BreakableNetwork) {
        network.cut()
        connection.first { it == ConnectionState.CONNECTING }
        network.restore()
        connect()
    }

    private fun keysOf(user: Callsign) = "user/publicKeys?userIds=${user.userId}"

    @Test
    fun `a call that was answered on another device meanwhile is not taken from it`() = racing {
        val bobs = devices()
        val gate = Gate()
        http.after = once({ it == keysOf(bobs.ann) }, gate::pass)
        val call = bobs.ann.call(checkNotNull(bobs.phone.userId))
        val onPhone = bobs.phone.ringing.first()
        val onLaptop = bobs.laptop.ringing.first()
        gate.isReached()
        val elsewhere = begun { onLaptop.ended() }
        val answered = begun { codeOf { onLaptop.answer() } }
        onPhone.answer()
        assertEquals(CallEnding.ANSWERED_ELSEWHERE, elsewhere.await())
        gate.open()
        assertEquals("CALL_NOT_ACTIVE", answered.await())
        val record = callRecordOf(bobs.ann.request("GET", "call/${call.callId}") as JsonObject)
        assertEquals(bobs.phone.deviceId, record.participant(checkNotNull(bobs.phone.userId))?.deviceId)
        assertEquals(CallState.ACTIVE, onPhone.state.value)
    }

    @Test
    fun `a call that is answered on two devices at once goes on with one of them`() = racing {
        val bobs = devices()
        bobs.ann.call(checkNotNull(bobs.phone.userId))
        val onPhone = bobs.phone.ringing.first()
        val onLaptop = bobs.laptop.ringing.first()
        val gate = Gate()
        http.before = once({ it.endsWith("/join") }, gate::pass)
        val answered = begun { onLaptop.answer() }
        gate.isReached()
        val told = begun {
            bobs.laptop.events.first { it is CallsignEvent.Message && it.type == "call_answered_elsewhere" }
        }
        onPhone.answer()
        told.await()
        val moved = begun { onPhone.ended() }
        gate.open()
        answered.await()
        assertEquals(CallEnding.MOVED, moved.await())
        assertEquals(CallState.ACTIVE, onLaptop.state.value)
    }

    @Test
    fun `an app that is closed while it answers does not join`() = racing {
        val ann = person("Ann")
        val bob = person("Bob", http)
        befriend(ann, bob)
        val gate = Gate()
        http.after = once({ it == keysOf(ann) }, gate::pass)
        val call = ann.call(checkNotNull(bob.userId))
        val bobs = bob.ringing.first()
        gate.isReached()
        val answered = begun { codeOf { bobs.answer() } }
        bob.close()
        gate.open()
        assertEquals("CALL_NOT_ACTIVE", answered.await())
        assertEquals(CallState.RINGING, call.state.value)
    }

    @Test
    fun `a call that is restored while the connection comes back is restored once`() = racing {
        BreakableNetwork(server.url).use { network ->
            val ann = person("Ann")
            val storage = MemoryAppStorage()
            val bob = person("Bob", http, network.url, storage)
            val (call) = inCall(ann, bob)
            bob.close()
            val reads = List(2) { Gate() }
            val left = ConcurrentLinkedQueue(reads)
            http.after = { if (it == "call/${call.callId}") left.poll()?.pass() }
            val again = app(storage, http, network.url)
            val resumed = Collections.synchronizedList(mutableListOf<Call>())
            val collecting = launch(start = CoroutineStart.UNDISPATCHED) {
                again.events.filterIsInstance<CallsignEvent.Resumed>().collect { resumed += it.call }
            }
            val ready = begun { again.events.filterIsInstance<CallsignEvent.Ready>().take(2).toList() }
            again.resume()
            reads[0].isReached()
            again.reconnect(network)
            reads[1].isReached()
            for (read in reads) read.open()
            ready.await()
            assertEquals(resumed, again.calls.value)
            collecting.cancel()
            resumed.single().state.first { it == CallState.ACTIVE }
            haveOneKey(call, resumed.single())
            again.close()
        }
    }

    @Test
    fun `a call that is joined twice at once is joined once`() = racing {
        val bobs = devices()
        val call = bobs.ann.call(checkNotNull(bobs.phone.userId))
        bobs.phone.ringing.first().answer()
        val joins = AtomicInteger()
        http.before = { if (it.endsWith("/join")) joins.incrementAndGet() }
        val joined = List(2) { begun { bobs.laptop.join(call.callId) } }.awaitAll()
        assertSame(joined[0], joined[1])
        assertSame(joined[0], bobs.laptop.join(call.callId))
        joined[0].state.first { it == CallState.ACTIVE }
        assertEquals(1, joins.get())
        haveOneKey(call, joined[0])
    }

    @Test
    fun `a user who left and joins again while the connection comes back is in the call`() = racing {
        BreakableNetwork(server.url).use { network ->
            val ann = person("Ann")
            val bob = person("Bob", http, network.url)
            val (call, bobs) = inCall(ann, bob)
            bobs.leave()
            val gate = Gate()
            http.before = once({ it.endsWith("/join") }, gate::pass)
            val joined = begun { bob.join(call.callId) }
            gate.isReached()
            val ready = begun { bob.events.first { it == CallsignEvent.Ready } }
            bob.reconnect(network)
            ready.await()
            gate.open()
            val back = joined.await()
            assertEquals(CallState.ACTIVE, back.state.first { it != CallState.REJOINING })
            haveOneKey(call, back)
            bob.close()
        }
    }

    @Test
    fun `a call that can not be joined now is not left half joined`() = racing {
        val ann = person("Ann")
        val bob = person("Bob", http)
        val (call, bobs) = inCall(ann, bob)
        bobs.leave()
        http.before = once({ it.endsWith("/join") }) { throw ServerFailure() }
        assertEquals("HTTP_500", codeOf { bob.join(call.callId) })
        assertEquals(emptyList<Call>(), bob.calls.value)
        val (other) = inCall(bob, person("Cat"))
        http.before = once({ it.endsWith("/leave") }) { throw ServerFailure() }
        assertEquals("HTTP_500", codeOf { bob.join(call.callId) })
        assertEquals(listOf(other), bob.calls.value)
    }

    @Test
    fun `a key that is renewed while this device joins, and can not be read now, is asked for`() = racing {
        val ann = person("Ann")
        val (call) = inCall(ann, person("Bob"))
        val cats = invited(call, ann, person("Cat", http))
        val gate = Gate()
        http.before = once({ it.endsWith("/join") }, gate::pass)
        val answered = begun { cats.answer() }
        gate.isReached()
        val failed = begun { cats.failed() }
        http.before = once({ it == keysOf(ann) }) { throw ServerFailure() }
        call.renewKey()
        assertEquals("HTTP_500", failed.await())
        http.before = once({ it == keysOf(ann) }) { throw ServerFailure() }
        gate.open()
        answered.await()
        cats.state.first { it == CallState.ACTIVE }
        haveOneKey(call, cats)
    }

    @Test
    fun `a new key that could not be sent after a person left is made again`() = racing {
        val ann = person("Ann", http)
        val (call, bobs) = inCall(ann, person("Bob"))
        val cats = invited(call, ann, person("Cat"))
        cats.answer()
        http.before = once({ it.endsWith("/keys") }) { throw ServerFailure() }
        val failed = begun { call.failed() }
        cats.leave()
        assertEquals("HTTP_500", failed.await())
        bobs.key.first { it?.epoch == 2L }
        haveOneKey(call, bobs)
    }

    @Test
    fun `a new key whose sending seemed to fail does not part the host from the call`() = racing {
        val (call, bobs) = inCall(person("Ann", http), person("Bob"))
        http.after = once({ it.endsWith("/keys") }) { throw ServerFailure() }
        assertEquals("HTTP_500", codeOf { call.renewKey() })
        bobs.key.first { it?.epoch == 2L }
        bobs.key.first { it?.epoch == 3L }
        haveOneKey(call, bobs)
    }

    @Test
    fun `a device that could not come back at once tries again`() = racing {
        BreakableNetwork(server.url).use { network ->
            val storage = MemoryAppStorage()
            val ann = person("Ann", http, network.url, storage)
            val (_, bobs) = inCall(ann, person("Bob"))
            bobs.leave()
            ann.close()
            val gate = Gate()
            http.before = once({ it.endsWith("/rejoin") }) {
                gate.pass()
                throw ServerFailure()
            }
            val again = app(storage, http, network.url)
            again.resume()
            val back = again.calls.first { it.isNotEmpty() }.single()
            gate.isReached()
            val failed = begun { back.failed() }
            gate.open()
            assertEquals("HTTP_500", failed.await())
            again.reconnect(network)
            back.state.first { it == CallState.ACTIVE }
            assertEquals(1, back.keys.size)
            again.close()
        }
    }

    @Test
    fun `a device that becomes the host of a call without a key makes one`() = racing {
        // The host never answers, and this device gives up sooner than the server says.
        val silent = AlteredHttp(server.url)
        silent.before = { if (it.endsWith("/accept-rejoin")) throw ServerFailure() }
        http.alter = { operation, answer ->
            if (operation.endsWith("/request-rejoin")) JsonObject(mapOf("expiresIn" to JsonPrimitive(1))) else answer
        }
        val storages = List(2) { MemoryAppStorage() }
        val ann = person("Ann", silent)
        val bob = person("Bob", http, storage = storages[0])
        val cat = person("Cat", http, storage = storages[1])
        val (call) = inCall(ann, bob)
        invited(call, ann, cat).answer()
        bob.close()
        cat.close()
        val again = storages.map { app(it, http) }
        for (one in again) one.resume()
        val back = again.map { one -> one.calls.first { it.isNotEmpty() }.single() }
        for (one in back) one.state.first { it == CallState.KEYLESS }
        call.leave()
        for (one in back) one.state.first { it == CallState.ACTIVE }
        haveOneKey(back[0], back[1])
    }

    @Test
    fun `a call that is started while the app is closed ends`() = racing {
        val ann = person("Ann", http)
        val bob = person("Bob")
        befriend(ann, bob)
        val gate = Gate()
        http.after = once({ it == "call/start" }, gate::pass)
        val started = begun { ann.call(checkNotNull(bob.userId)) }
        gate.isReached()
        val bobs = bob.ringing.first()
        val ended = begun { bobs.ended() }
        ann.close()
        gate.open()
        assertEquals(CallEnding.LEFT, started.await().ending)
        assertEquals(emptyList<EpochKey>(), started.await().keys)
        assertEquals(CallEnding.CANCELLED, ended.await())
    }

    @Test
    fun `a call that rings does so again in an app that comes back`() = racing {
        val storage = MemoryAppStorage()
        val ann = person("Ann")
        val bob = person("Bob", storage = storage)
        befriend(ann, bob)
        val call = ann.call(checkNotNull(bob.userId))
        val first = bob.ringing.first()
        val moved = begun { first.ended() }
        val other = app(storage)
        other.resume()
        assertEquals(CallEnding.MOVED, moved.await())
        val rungThere = other.ringing.first()
        bob.connect()
        bob.ringing.first().answer()
        call.state.first { it == CallState.ACTIVE }
        assertEquals(CallEnding.MOVED, rungThere.ended())
    }

    @Test
    fun `a call of before a restart that could not be read is read again`() = racing {
        val storage = MemoryAppStorage()
        val bob = person("Bob", http, storage = storage)
        val (call) = inCall(person("Ann"), bob)
        bob.close()
        http.before = once({ it == "call/${call.callId}" }) { throw ServerFailure() }
        val again = app(storage, http)
        val failed = begun { again.events.filterIsInstance<CallsignEvent.Failed>().first() }
        again.resume()
        assertEquals("HTTP_500", failed.await().error.code)
        val back = again.calls.first { it.isNotEmpty() }.single()
        back.state.first { it == CallState.ACTIVE }
        haveOneKey(call, back)
    }

    @Test
    fun `a slow answer takes back no change of the profile`() = racing {
        val address = server.newAddress("Ann")
        val gate = Gate()
        http.after = once({ it == "user" }, gate::pass)
        val ann = person("Ann", http, address = address)
        gate.isReached()
        val laptop = person("Ann", address = address)
        val changed = begun { ann.events.first { it is CallsignEvent.Message && it.type == "profile_changed" } }
        laptop.request("PUT", "user", JsonObject(mapOf("displayName" to JsonPrimitive("Anna"))))
        changed.await()
        assertEquals("Anna", ann.user.value?.displayName)
        val ready = begun { ann.events.first { it == CallsignEvent.Ready } }
        gate.open()
        ready.await()
        assertEquals("Anna", ann.user.value?.displayName)
    }

    /** Reads wait until they are [allowed]. */
    private class SlowStorage(private val kept: AppStorage) : AppStorage {
        val asked = CompletableDeferred<Unit>()
        val allowed = CompletableDeferred<Unit>()

        override suspend fun get(key: String): String? {
            asked.complete(Unit)
            allowed.await()
            return kept.get(key)
        }

        override suspend fun put(key: String, text: String?) = kept.put(key, text)
    }

    @Test
    fun `an app that is closed while it starts stays closed`() = racing {
        val storage = MemoryAppStorage()
        person("Ann", storage = storage).close()
        val slow = SlowStorage(storage)
        val again = app(slow)
        val resumed = begun { again.resume() }
        slow.asked.await()
        val closed = begun { again.close() }
        slow.allowed.complete(Unit)
        resumed.await()
        closed.await()
        assertNull(again.userId)
        assertEquals(ConnectionState.OFF, again.connection.value)
    }

    @Test
    fun `a person who signs out is not told so by the server, which closes the connection first`() = racing {
        val ann = person("Ann", http)
        ann.connection.first { it == ConnectionState.CONNECTED }
        http.after = once({ it == "logout" }) {
            runBlocking { ann.connection.first { it != ConnectionState.CONNECTED } }
        }
        val told = Collections.synchronizedList(mutableListOf<CallsignEvent>())
        val collecting = launch(start = CoroutineStart.UNDISPATCHED) {
            ann.events.filterIsInstance<CallsignEvent.SignedOut>().collect { told += it }
        }
        ann.signOut()
        assertEquals(emptyList<CallsignEvent>(), told)
        assertNull(ann.userId)
        collecting.cancel()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
