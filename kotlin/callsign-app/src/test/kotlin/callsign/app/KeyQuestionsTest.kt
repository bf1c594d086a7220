package callsign.app

import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** New keys of a contact are asked about, and links are read, on the built server; skipped where it is not built. */
@Timeout(120)
class KeyQuestionsTest {
    private suspend fun failureOf(act: suspend () -> Unit): CallsignException = try {
        act()
        error("it did not fail")
    } catch (error: CallsignException) {
        error
    }

    /** Bob on a new device, the only one from now on. */
    private suspend fun startOver(address: String): Callsign {
        val storage = MemoryAppStorage()
        val next = server.app(storage)
        server.signIn(next, "Bob", address)
        next.devices.listState.filterIsInstance<OwnListState.Waiting>().first()
        server.prove(storage, address)
        next.devices.startOver()
        return next
    }

    @Test
    fun `calls to and from a person who started over wait until those keys are accepted`() = runBlocking {
        val storage = MemoryAppStorage()
        val ann = server.app(storage)
        server.signIn(ann, "Ann")
        val bob = server.app()
        val address = server.newAddress("Bob")
        val bobId = server.signIn(bob, "Bob", address)
        befriend(ann, bob)
        ann.call(bobId).end()
        val newBob = startOver(address)

        val asked = failureOf { ann.call(bobId) }
        assertEquals("KEYS_RESET", asked.code)
        assertEquals("$bobId", asked.members.text("userId"))
        assertEquals("reset", asked.members.text("kind"))
        val listHash = asked.members.needText("listHash")
        assertEquals("KEYS_RESET", failureOf { ann.contacts.acceptKeys(bobId, "another") }.code)

        val rung = async(start = CoroutineStart.UNDISPATCHED) { ann.ringing.first() }
        val call = newBob.call(checkNotNull(ann.userId))
        val incoming = rung.await()
        assertEquals("KEYS_RESET", failureOf { incoming.answer() }.code)
        assertEquals(false, incoming.isVerified)
        ann.contacts.acceptKeys(bobId, listHash)
        incoming.answer()
        call.state.first { it == CallState.ACTIVE }
        call.end()
        ann.close()

        val restarted = server.app(storage)
        restarted.resume()
        restarted.call(bobId).end()
        startOver(address).close()
        val next = failureOf { restarted.call(bobId) }
        assertEquals("KEYS_RESET", next.code)
        assertTrue(next.members.text("listHash") != listHash)
        assertEquals("KEYS_RESET", failureOf { restarted.contacts.acceptKeys(bobId, listHash) }.code)
        for (app in listOf(restarted, bob, newBob)) app.close()
    }

    @Test
    fun `the name of a link's owner is not asked for where the fragment does not hold`() = runBlocking {
        val http = AlteredHttp(server.url)
        val asked = mutableListOf<String>()
        val ann = server.app(http = http.client)
        server.signIn(ann, "Ann")
        val bob = server.app()
        server.signIn(bob, "Bob")
        val link = bob.contacts.shareLink()
        val (url, fragment) = link.split("#")
        http.before = { asked += it }
        val damaged = listOf(
            fragment.drop(1),
            fragment.dropLast(4),
            fragment.replace("l=", "l=A"),
            fragment.replace("n=A", "n=B"),
            "top",
        )
        for (each in damaged) assertEquals("MALFORMED", failureOf { ann.contacts.open("$url#$each") }.code, each)
        assertTrue(asked.none { it.startsWith("share-token") })
        assertTrue((ann.contacts.open(link) as Opened.Link).isNamed)
        ann.close()
        bob.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
