package callsign.app

import kotlinx.coroutines.flow.filterNotNull
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Calls between this package and `CallsignApp` of Swift on the built server; skipped where either is not built. */
@Timeout(120)
class SwiftCallsTest {
    private class Pair(val ann: Callsign, val annId: ULong, val bob: Participant, val bobId: ULong, val storage: AppStorage)

    /** Ann in Kotlin and Bob in Swift, who are contacts. */
    private fun withFriends(act: suspend Pair.() -> Unit) = runBlocking {
        assumeTrue(Participant.isSwiftBuilt, "the Swift package is not built")
        val storage = MemoryAppStorage()
        val ann = server.app(storage)
        val annId = server.signIn(ann, "Ann")
        Participant.inSwift(server.url, server.stompTcp).use { bob ->
            val bobId = bob.text("signIn", server.newAddress("Bob"), "Bob").toULong()
            ann.contacts.requestByLink(bob.text("shareLink"))
            bob.tell("accept", annId)
            Pair(ann, annId, bob, bobId, storage).act()
        }
        ann.close()
    }

    @Test
    fun `both call each other, with verified keys and one fingerprint, and take new keys of either`() = withFriends {
        val call = ann.call(bobId)
        assertEquals(call.callId, bob.text("ringing"))
        val answered = bob.view("answer", call.callId)
        call.state.first { it == CallState.ACTIVE }
        val first = call.fingerprint
        assertEquals(first, answered.text("fingerprint"))
        assertEquals("true", answered.text("isVerified"))
        call.renewKey()
        assertNotEquals(first, call.fingerprint)
        assertEquals(call.fingerprint, bob.view("until", call.callId, "active", 2).text("fingerprint"))
        call.end()
        assertEquals("hangup", bob.text("ending", call.callId))

        val back = bob.view("call", annId)
        val ringing = ann.ringing.first()
        ringing.answer()
        assertEquals(true, ringing.isVerified)
        assertEquals(back.text("fingerprint"), ringing.fingerprint)
        bob.view("until", ringing.callId, "active")
        bob.tell("renewKey", ringing.callId)
        val newest = ringing.key.filterNotNull().first { it.epoch == 2L }
        assertEquals(newest.fingerprint, bob.view("until", ringing.callId, "active", 2).text("fingerprint"))
        ringing.leave()
        assertEquals(ann.contacts.comparisonCode(bobId), bob.text("code", annId))
    }

    @Test
    fun `either comes back into the call after a restart, with the key of the other`() = withFriends {
        val call = ann.call(bobId)
        bob.view("answer", bob.text("ringing"))
        call.state.first { it == CallState.ACTIVE }
        val fingerprint = call.fingerprint
        ann.close()
        val again = server.app(storage)
        again.resume()
        val resumed = again.calls.first { it.isNotEmpty() }.single()
        resumed.state.first { it == CallState.ACTIVE }
        assertEquals(fingerprint, resumed.key.filterNotNull().first().fingerprint)

        bob.tell("close")
        bob.tell("resume")
        assertEquals(fingerprint, bob.view("until", call.callId, "active", 1).text("fingerprint"))
        resumed.end()
        assertEquals("hangup", bob.text("ending", call.callId))
        again.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
