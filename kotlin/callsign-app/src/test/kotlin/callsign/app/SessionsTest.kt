package callsign.app

import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.takeWhile
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Sessions of one user, and those that may do little, on the built server; skipped where it is not built. */
@Timeout(120)
class SessionsTest {
    private val apps = mutableListOf<Callsign>()

    @AfterEach
    fun close() = runBlocking {
        for (app in apps) app.close()
    }

    private suspend fun person(address: String): Callsign =
        server.app().also(apps::add).also { server.signIn(it, "Ann", address) }

    private suspend fun codeOf(act: suspend () -> Unit): String? = try {
        act()
        null
    } catch (error: CallsignException) {
        error.code
    }

    private suspend fun started(app: Callsign) =
        app.events.filterIsInstance<CallsignEvent.Message>().first { it.type == "session_started" }

    private suspend fun Callsign.ready() = connection.first { it == ConnectionState.CONNECTED }

    @Test
    fun `an owner hears of a session that begins, sees it and ends it`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        owner.ready()
        val told = async(start = CoroutineStart.UNDISPATCHED) { started(owner) }
        val thief = person(address)
        val ended = async(start = CoroutineStart.UNDISPATCHED) {
            thief.events.filterIsInstance<CallsignEvent.SignedOut>().first()
        }
        val (newest, own) = owner.sessions.list()
        assertEquals(told.await().members.text("sessionId"), newest.id)
        assertEquals(listOf(false, true), listOf(newest, own).map { it.isCurrent })
        assertEquals(listOf(thief.deviceId, owner.deviceId), listOf(newest, own).map { it.device?.deviceId })
        assertTrue(newest.createdAtMs <= newest.lastUsedAtMs && newest.lastUsedAtMs < newest.endsAtMs)
        assertEquals("otp", newest.proof)
        owner.sessions.end(newest.id)
        ended.await()
        thief.user.first { it == null }
        assertEquals(listOf(own.id), owner.sessions.list().map { it.id })
        assertEquals("SESSION_NOT_FOUND", codeOf { owner.sessions.end(newest.id) })
    }

    @Test
    fun `all sessions but one's own are ended at once`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val others = List(2) { person(address) }
        assertEquals(3, owner.sessions.list().size)
        owner.sessions.endOthers()
        assertEquals(listOf(true), owner.sessions.list().map { it.isCurrent })
        for (other in others) other.user.first { it == null }
    }

    @Test
    fun `an app hears of the sign-ins of others, and not of its own`() = runBlocking {
        val address = server.newAddress("ann")
        val owner = person(address)
        val told = async(start = CoroutineStart.UNDISPATCHED) { started(owner) }
        owner.signOut()
        server.signIn(owner, "Ann", address)
        owner.ready()
        person(address)
        val newest = owner.sessions.list().first()
        assertFalse(newest.isCurrent)
        assertEquals(newest.id, told.await().members.text("sessionId"))
    }

    @Test
    fun `a device that waits for its place on the list may do little, fails at nothing, and is ready once it is on it`() =
        runBlocking {
            val address = server.newAddress("ann")
            val owner = person(address)
            val second = server.app().also(apps::add)
            val events = async(start = CoroutineStart.UNDISPATCHED) {
                second.events.takeWhile { it != CallsignEvent.Ready }.toList()
            }
            server.signIn(second, "Ann", address)
            second.devices.listState.first { it is OwnListState.Waiting }
            assertEquals("DEVICE_NOT_LISTED", second.restriction)
            assertEquals("DEVICE_NOT_LISTED", codeOf { second.contacts.list() })
            assertEquals("DEVICE_NOT_LISTED", codeOf { second.sessions.endOthers() })
            assertEquals(listOf(true), second.sessions.list().map { it.isCurrent })
            approve(owner)
            assertEquals(emptyList<CallsignEvent>(), events.await().filterIsInstance<CallsignEvent.Failed>())
            assertNull(second.restriction)
            assertEquals(address, second.user.value?.email)
            assertEquals(emptyList<Contact>(), second.contacts.list().items)
        }

    private suspend fun approve(owner: Callsign) {
        val listed = owner.devices.listState.filterIsInstance<OwnListState.Listed>().first { it.waiting.isNotEmpty() }
        owner.devices.approve(listed.waiting.single())
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
