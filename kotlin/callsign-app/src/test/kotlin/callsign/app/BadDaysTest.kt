package callsign.app

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Calls on the built server over a network that breaks and holds things up. */
@Timeout(120)
class BadDaysTest {
    /** Ann, who is in a call with Bob. Her sockets break with [network], her requests go by [http]. */
    private class InCall(
        scope: CoroutineScope,
        val ann: Callsign,
        val bob: Callsign,
        val call: Call,
        val bobs: Call,
        val network: BreakableNetwork,
        val http: AlteredHttp,
    ) : CoroutineScope by scope {
        suspend fun cut() {
            network.cut()
            ann.connection.first { it == ConnectionState.CONNECTING }
        }

        suspend fun reconnect() {
            network.restore()
            ann.connect()
        }
    }

    private fun inCall(act: suspend InCall.() -> Unit) = runBlocking {
        BreakableNetwork(server.url).use { network ->
            val http = AlteredHttp(server.url)
            val ann = server.app(http = http.client, through = network.url)
            server.signIn(ann, "Ann")
            val bob = server.app()
            val bobId = server.signIn(bob, "Bob")
            befriend(ann, bob)
            val call = ann.call(bobId)
            val bobs = bob.ringing.first()
            bobs.answer()
            call.state.first { it == CallState.ACTIVE }
            InCall(this, ann, bob, call, bobs, network, http).act()
            ann.close()
            bob.close()
        }
    }

    private fun Call.stateOf(userId: ULong) = participants.value.find { it.userId == userId }?.state

    @Test
    fun `a call that ended while the connection was away ends for the reason that comes with the next one`() = inCall {
        val gate = Gate()
        http.before = { if (it == "call/${call.callId}") gate.pass() }
        cut()
        reconnect()
        gate.isReached()
        cut()
        bobs.end()
        // The answer says that it has ended, and not why.
        gate.open()
        val ending = async { call.ended() }
        assertNull(withTimeoutOrNull(LONGER_THAN_IT_WAITS_MS) { ending.await() })
        reconnect()
        assertEquals(CallEnding.HANGUP, ending.await())
    }

    @Test
    fun `a slow answer takes back nothing that the topic has told meanwhile`() = inCall {
        val cat = server.app()
        val catId = server.signIn(cat, "Cat")
        befriend(ann, cat)
        val rings = CompletableDeferred<Unit>()
        val watching = async(start = CoroutineStart.UNDISPATCHED) {
            call.participants.first { call.stateOf(catId) == ParticipantState.RINGING }
            rings.complete(Unit)
        }
        http.after = { if (it.endsWith("/invite")) runBlocking { rings.await() } }
        call.invite(listOf(catId))
        watching.await()
        assertEquals(ParticipantState.RINGING, call.stateOf(catId))

        val gate = Gate()
        http.after = { if (it == "call/${call.callId}") gate.pass() }
        val isReady = async(start = CoroutineStart.UNDISPATCHED) { ann.events.first { it == CallsignEvent.Ready } }
        cut()
        reconnect()
        gate.isReached()
        cat.ringing.first().answer()
        call.participants.first { call.stateOf(catId) == ParticipantState.JOINED }
        gate.open()
        isReady.await()
        assertEquals(ParticipantState.JOINED, call.stateOf(catId))
        cat.close()
    }

    @Test
    fun `a device that was away for too long asks for the key, and comes back`() = inCall {
        var isLost = true
        // The server would wait for 90 seconds.
        http.alter = { operation, answer ->
            if (operation == "call/${call.callId}" && isLost) {
                isLost = false
                lost(answer, "${ann.userId}")
            } else answer
        }
        val states = async(start = CoroutineStart.UNDISPATCHED) {
            call.events.filterIsInstance<CallEvent.StateChanged>().map { it.state }.take(2).toList()
        }
        cut()
        reconnect()
        assertEquals(listOf(CallState.REJOINING, CallState.ACTIVE), states.await())
        assertEquals(bobs.fingerprint, call.fingerprint)
    }

    private fun lost(record: JsonObject, userId: String): JsonObject {
        val participants = record.members("participants").map {
            if (it.text("userId") == userId) JsonObject(it + ("state" to JsonPrimitive("lost"))) else it
        }
        return JsonObject(record + ("participants" to JsonArray(participants)))
    }

    private companion object {
        const val LONGER_THAN_IT_WAITS_MS = 3_000L

        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
