package callsign.app

import callsign.app.CallsignException.LocalCode
import java.io.IOException
import java.util.Collections
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.combine
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Response
import okhttp3.ResponseBody
import okhttp3.ResponseBody.Companion.asResponseBody
import okio.Buffer
import okio.ForwardingSource
import okio.buffer
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Events that come to a device while a request of its own is under way. */
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

    private fun <Value> CoroutineScope.begun(act: suspend () -> Value): Deferred<Value> =
        async(start = CoroutineStart.UNDISPATCHED) { act() }

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
    fun `two people who call each other at once are in one call`() = racing {
        val ann = person("Ann")
        val bob = person("Bob")
        befriend(ann, bob)
        val starts = listOf(begun { ann.call(checkNotNull(bob.userId)) }, begun { bob.call(checkNotNull(ann.userId)) })
        val (anns, bobs) = starts.awaitAll()
        assertEquals(anns.callId, bobs.callId)
        for (call in listOf(anns, bobs)) call.state.first { it == CallState.ACTIVE }
        haveOneKey(anns, bobs)
    }

    @Test
    fun `a device that asks for the key while the call goes on gets it from the host`() = racing {
        val (call, bobs) = inCall(person("Ann"), person("Bob", http))
        val asked = CompletableDeferred<Unit>()
        http.before = { if (it.endsWith("/rejoin")) asked.complete(Unit) }
        bobs.askForKey()
        asked.await()
        assertEquals(CallState.ACTIVE, bobs.state.value)
        haveOneKey(call, bobs)
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
    fun `a slow answer takes back no change of the profile`() = racing {
        val address = server.newAddress("Ann")
        val gate = Gate()
        http.after = once({ it == "user" }, gate::pass)
        val ann = person("Ann", http, address = address)
        gate.isReached()
        val laptop = server.approvedDevice(ann, address).also(apps::add)
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

    /** A read of a call that was kept waits, with the text that it has found, while it is [held]. */
    private class HeldStorage(private val kept: AppStorage) : AppStorage by kept {
        @Volatile
        var held: Gate? = null

        override suspend fun get(key: String): String? = kept.get(key).also {
            if (key.startsWith("call.")) held?.run { passed() }
        }
    }

    @Test
    fun `a call that is left while its app connects is not resumed`() = racing {
        BreakableNetwork(server.url).use { network ->
            val storage = HeldStorage(MemoryAppStorage())
            val ann = person("Ann")
            val bob = person("Bob", http, network.url, storage)
            val (_, bobs) = inCall(ann, bob)
            val read = Gate()
            storage.held = read
            bob.reconnect(network)
            read.isReached()
            storage.held = null
            val ready = begun { bob.events.first { it == CallsignEvent.Ready } }
            val leave = Gate()
            http.before = once({ it.endsWith("/leave") }, leave::pass)
            val left = begun { bobs.leave() }
            leave.isReached()
            read.open()
            ready.await()
            assertEquals(emptyList<Call>(), bob.calls.value)
            leave.open()
            left.await()
        }
    }

    @Test
    fun `a call that is joined again before its topic is there is watched once`() = racing {
        BreakableNetwork(server.url).use { network ->
            val ann = person("Ann")
            val bob = person("Bob", http, network.url)
            val cat = person("Cat")
            for (friend in listOf(bob, cat)) befriend(ann, friend)
            val call = ann.call(listOf(checkNotNull(bob.userId), checkNotNull(cat.userId)))
            val cats = cat.ringing.first()
            cats.answer()
            val first = bob.ringing.first()
            network.cut()
            bob.connection.first { it == ConnectionState.CONNECTING }
            first.answer()
            first.leave()
            val again = bob.join(call.callId)
            network.restore()
            bob.connect()
            again.state.first { it == CallState.ACTIVE }
            val told = begun { again.events.filterIsInstance<CallEvent>().toList() }
            cats.leave()
            call.participants.first { all -> all.any { it.state == ParticipantState.LEFT } }
            call.end()
            val left = told.await().filterIsInstance<CallEvent.ParticipantChanged>().map { it.participant }
            assertEquals(1, left.count { it.userId == cat.userId && it.state == ParticipantState.LEFT })
        }
    }

    @Test
    fun `an app that is closed on a dead network says once that it leaves a call`() = racing {
        val bob = person("Bob", http)
        val (_, bobs) = inCall(person("Ann"), bob)
        val attempts = AtomicInteger()
        val begun = CompletableDeferred<Unit>()
        http.before = {
            if (it.endsWith("/leave")) {
                attempts.incrementAndGet()
                begun.complete(Unit)
                throw IOException("no network")
            }
        }
        val left = begun { bobs.leave() }
        begun.await()
        bob.close()
        left.await()
        val count = attempts.get()
        delay(300)
        assertEquals(count, attempts.get())
    }

    /** Gives up each read while it is [stalled], by a time limit of its own. */
    private class StallingStorage(private val kept: AppStorage) : AppStorage by kept {
        @Volatile
        var isStalled = false

        override suspend fun get(key: String): String? = if (isStalled) withTimeout(1) { awaitCancellation() } else kept.get(key)
    }

    @Test
    fun `a storage that takes too long by its own clock fails the command that needs it`() = racing {
        val storage = StallingStorage(MemoryAppStorage())
        val ann = person("Ann", storage = storage)
        val bob = person("Bob")
        befriend(ann, bob)
        storage.isStalled = true
        val error = withTimeout(20_000) { runCatching { ann.call(checkNotNull(bob.userId)) }.exceptionOrNull() }
        storage.isStalled = false
        assertEquals(LocalCode.STORAGE_FAILED, (error as CallsignException).code)
    }

    @Test
    fun `a session that ends while the app starts leaves nothing of it`() = racing {
        val address = server.newAddress("Ann")
        val storage = HeldStorage(MemoryAppStorage())
        val first = person("Ann", storage = storage, address = address)
        val other = server.approvedDevice(first, address).also(apps::add)
        first.close()
        val read = Gate()
        storage.held = read
        val again = app(storage)
        val told = begun { again.events.first { it is CallsignEvent.SignedOut } }
        other.signOut(allDevices = true)
        val resumed = begun { again.resume() }
        read.isReached()
        while ("accessToken" in checkNotNull(storage.get("session"))) delay(10)
        read.open()
        resumed.await()
        told.await()
        assertNull(again.userId)
    }

    /** Answers of the operation begin, and do not go on while they are [stalled]. */
    private class StallingHttp(private val operation: String) {
        @Volatile
        var stalled: Gate? = null
        val client: OkHttpClient = OkHttpClient.Builder().addInterceptor(::answer).build()

        private fun answer(chain: Interceptor.Chain): Response {
            val answer = chain.proceed(chain.request())
            val isStalled = chain.request().url.encodedPath.endsWith("/$operation")
            return if (isStalled) answer.newBuilder().body(stalled(answer.body)).build() else answer
        }

        private fun stalled(body: ResponseBody): ResponseBody {
            val source = object : ForwardingSource(body.source()) {
                override fun read(sink: Buffer, byteCount: Long): Long {
                    stalled?.pass()
                    return super.read(sink, byteCount)
                }
            }
            return source.buffer().asResponseBody(body.contentType())
        }
    }

    @Test
    fun `an answer that comes slowly holds up nothing else`() = racing {
        val http = StallingHttp("publicKeys")
        val ann = server.app(http = http.client).also(apps::add)
        server.signIn(ann, "Ann")
        val gate = Gate()
        http.stalled = gate
        val link = begun { ann.contacts.shareLink() }
        gate.isReached()
        val connected = begun { withTimeoutOrNull(5_000) { ann.connect() } }.await()
        gate.open()
        link.await()
        assertEquals(Unit, connected)
    }

    @Test
    fun `what a call has still to send is not sent as another user`() = racing {
        val ann = person("Ann", http)
        val bob = person("Bob")
        befriend(ann, bob)
        val gate = Gate()
        http.after = once({ it == "call/start" }, gate::pass)
        val start = begun { ann.call(checkNotNull(bob.userId)) }
        gate.isReached()
        ann.signOut()
        server.signIn(ann, "Cat")
        val sent = Collections.synchronizedList(mutableListOf<String>())
        http.before = { sent += it }
        gate.open()
        assertEquals(CallEnding.LEFT, start.await().ending)
        // The call's end is sent at once, and its leave after that.
        delay(300)
        assertEquals(emptyList<String>(), sent.filter { it.endsWith("/end") || it.endsWith("/leave") })
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
