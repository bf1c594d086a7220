package callsign.app

import callsign.app.CallsignException.LocalCode
import java.io.IOException
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Sign-ins that wait for the owner's answer, on the built server; skipped where it is not built. */
@Timeout(120)
class WaitingSignInTest {
    private val apps = mutableListOf<Callsign>()

    @AfterEach
    fun close() = runBlocking {
        for (app in apps) app.close()
    }

    private suspend fun app(storage: AppStorage = MemoryAppStorage(), http: AlteredHttp = AlteredHttp(server.url)) =
        server.app(storage, http.client).also(apps::add)

    private suspend fun person(address: String): Callsign = app().also { server.signIn(it, "Ann", address) }

    private suspend fun refusal(act: suspend () -> Unit): CallsignException = try {
        act()
        throw AssertionError("it was not refused")
    } catch (error: CallsignException) {
        error
    }

    private suspend fun enter(app: Callsign, address: String, written: String = address) {
        val refusal = refusal { app.signIn(written) { sentCode(server.url, address) } }
        assertEquals("SIGN_IN_WAITING", refusal.code)
        assertEquals(refusal.members.text("signInCode"), app.waitingSignIn()?.signInCode)
    }

    private suspend fun answer(owner: Callsign, approve: Boolean) =
        owner.sessions.answer(owner.sessions.waiting().single().id, approve)

    @Test
    fun `a sign-in waits, outlives a restart, and is in once another device approves it`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val told = async(start = CoroutineStart.UNDISPATCHED) {
            owner.events.filterIsInstance<CallsignEvent.Message>().first { it.type == "sign_in_waiting" }
        }
        val storage = MemoryAppStorage()
        val second = app(storage)
        enter(second, address)
        val waiting = checkNotNull(second.waitingSignIn())
        second.close()
        val shown = owner.sessions.waiting().single()
        assertEquals(
            listOf(shown.signInCode, shown.signInCode, address),
            listOf(waiting.signInCode, told.await().members.text("signInCode"), waiting.address),
        )
        assertEquals(shown.untilMs, waiting.untilMs)

        val again = app(storage)
        assertNull(again.resume())
        assertEquals(waiting, again.waitingSignIn())
        val users = List(2) { async { again.finishSignIn() } }
        owner.sessions.answer(shown.id, approve = true)
        assertEquals(listOf(owner.userId, owner.userId), users.awaitAll().map { it.userId })
        assertEquals(owner.userId, again.userId)
        assertNull(again.waitingSignIn())
        assertEquals(emptyList<SignInToAnswer>(), owner.sessions.waiting())
        assertEquals("SIGN_IN_NOT_FOUND", refusal { owner.sessions.answer(shown.id, approve = true) }.code)
        assertEquals("SIGN_IN_GONE", refusal { again.finishSignIn() }.code)
    }

    @Test
    fun `a sign-in that the owner refuses is told so, and waits no more`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val thief = app()
        enter(thief, address)
        answer(owner, approve = false)
        val refusal = refusal { thief.finishSignIn() }
        assertEquals("SIGN_IN_REFUSED", refusal.code)
        assertTrue(refusal.members.needTimeMs("until") > System.currentTimeMillis())
        assertNull(thief.waitingSignIn())
        assertNull(thief.userId)
        assertEquals("SIGN_IN_GONE", refusal { thief.finishSignIn() }.code)
    }

    @Test
    fun `the same app that enters another code goes on waiting, and another address waits anew`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val second = app()
        enter(second, address)
        val waiting = second.waitingSignIn()
        enter(second, address, written = " ${address.uppercase()}")
        assertEquals(waiting?.signInCode, second.waitingSignIn()?.signInCode)
        assertEquals(waiting?.signInCode, owner.sessions.waiting().single().signInCode)
        val other = server.newAddress("bob")
        val bob = person(other)
        enter(second, other)
        assertEquals(bob.sessions.waiting().single().signInCode, second.waitingSignIn()?.signInCode)
    }

    @Test
    fun `a device of the list that has signed out is in at once, and so is its app with another user's keys`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val deviceId = owner.deviceId
        owner.signOut()
        server.signIn(owner, "Ann", address)
        assertEquals(deviceId, owner.deviceId)
        assertNull(owner.restriction)
        assertEquals(emptyList<Contact>(), owner.contacts.list().items)
        owner.signOut()
        server.signIn(owner, "Bob")
        owner.signOut()
        enter(owner, address)
    }

    @Test
    fun `an app that is closed waits no longer, and its sign-in does`() = runBlocking<Unit> {
        val address = server.newAddress("ann")
        person(address)
        val http = AlteredHttp(server.url)
        val second = app(http = http)
        enter(second, address)
        val asked = Gate()
        http.after = once({ it == "login/waiting" }, asked::pass)
        val finishing = async { refusal { second.finishSignIn() } }
        asked.isReached()
        second.close()
        assertEquals(LocalCode.SIGNED_OUT, finishing.await().code)
        asked.open()
        assertEquals(address, second.waitingSignIn()?.address)
    }

    @Test
    fun `a sign-in by another address while one waits is the one that counts`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val http = AlteredHttp(server.url)
        val second = app(http = http)
        enter(second, address)
        val asked = Gate()
        http.after = once({ it == "login/waiting" }, asked::pass)
        val finishing = async { refusal { second.finishSignIn() } }
        asked.isReached()
        val bob = async { server.signIn(second, "Bob") }
        asked.open()
        val bobsId = bob.await()
        answer(owner, approve = true)
        assertEquals("SIGN_IN_GONE", finishing.await().code)
        assertEquals(bobsId, second.userId)
    }

    @Test
    fun `of a sign-in that has waited and another one at the same time, the first one counts`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val http = AlteredHttp(server.url)
        val second = app(http = http)
        enter(second, address)
        answer(owner, approve = true)
        val asked = Gate()
        http.after = once({ it == "login/waiting" }, asked::pass)
        val finishing = async { second.finishSignIn() }
        asked.isReached()
        val other = server.newAddress("bob")
        val refusal = refusal { second.signIn(other) { sentCode(server.url, other).also { asked.open() } } }
        assertEquals(LocalCode.ALREADY_SIGNED_IN, refusal.code)
        assertEquals(owner.userId, finishing.await().userId)
        assertEquals(owner.userId, second.userId)
    }

    @Test
    fun `a network that is away does not end the wait`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val http = AlteredHttp(server.url)
        val second = app(http = http)
        enter(second, address)
        answer(owner, approve = true)
        val lost = AtomicInteger()
        // As often as one request is repeated.
        http.before = { if (it == "login/waiting" && lost.incrementAndGet() <= 6) throw IOException("no network") }
        assertEquals(owner.userId, second.finishSignIn().userId)
        assertEquals(7, lost.get())
    }

    @Test
    fun `asks come every five seconds, later every minute, and never sooner than the server wants`() {
        assertEquals(listOf(5_000L, 5_000L, 60_000L), listOf(0, 59, 60).map { pauseMs(it, null) })
        assertEquals(listOf(9_000L, 60_000L, 90_000L), listOf(pauseMs(0, 9), pauseMs(60, 9), pauseMs(60, 90)))
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension(mapOf("CALLSIGN_SIGN_IN_WAIT_HOURS" to "72"))
    }
}
