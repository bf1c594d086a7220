package callsign.app

import java.util.concurrent.CopyOnWriteArrayList
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Connections to the built server; skipped where it is not built. */
@Timeout(120)
class ConnectionTest {
    @JvmField
    @RegisterExtension
    val server = ServerExtension()
    private val url get() = server.url
    private val storage = MemoryAppStorage()

    /** Ann's device, which is registered, as one run of her app. */
    internal class Run(session: Session, server: Server, private val onEvent: suspend Run.(JsonObject) -> Unit) {
        val operations = Operations {}
        val states = MutableStateFlow(ConnectionState.OFF)
        val connections = MutableStateFlow(0)

        /** Each state, and how many attempts had failed. */
        val told = CopyOnWriteArrayList<String>()
        private val listener = object : ConnectionListener {
            override fun onState(state: ConnectionState, failures: Int) {
                states.value = state
                told += "$state $failures"
            }

            override suspend fun onConnected() {
                connections.value++
            }

            override suspend fun onEvent(event: JsonObject) = this@Run.onEvent(this@Run, event)

            override suspend fun onDeviceMissing() = error("the device is registered")

            override fun onTrouble(error: Throwable) = throw error
        }
        private val connection = Connection(operations.scope, server, session, listener)

        suspend fun connect() = operations.run { connection.connect() }

        suspend fun send(destination: String) =
            operations.run { connection.send(destination, JsonObject(emptyMap())) }

        /** What was acknowledged is on the server's disk then. */
        suspend fun disconnect() = operations.run { connection.disconnect() }

        /** As if the app were killed: nothing more is acknowledged. */
        fun kill() = operations.scope.cancel()
    }

    private suspend fun appRun(url: String = this.url, onRequest: suspend Run.(JsonObject) -> Unit): Run {
        val server = Server(url)
        val session = Session.open(server, storage)
        if (session.userId == null) {
            val sent = session.requestCode("ann@example.org", "Ann")
            session.verifyCode(sent.challengeId, sentCode(url, "ann@example.org"))
            DeviceRegistration(server, session, storage, softwareKeys(storage)).register()
        }
        return Run(session, server) { if (it.text("type") == "friend_request") onRequest(it) }
    }

    private suspend fun annId() = checkNotNull(Session.open(Server(url), storage).userId)

    private suspend fun askedBy(name: String) {
        val other = Callsign(url, developmentPins(url), MemoryAppStorage())
        other.signIn("$name@example.org", name) { sentCode(url, "$name@example.org") }
        other.contacts.request(annId())
        other.close()
    }

    private fun nameIn(event: JsonObject) = event.needText("displayName")

    @Test
    fun `a message whose acknowledgement was lost with the network is handled once`() = runBlocking {
        BreakableNetwork(url).use { network ->
            val handled = CopyOnWriteArrayList<String>()
            val last = CompletableDeferred<Unit>()
            val ann = appRun(network.url) { event ->
                handled += nameIn(event)
                if (nameIn(event) == "Cat") last.complete(Unit)
                if (nameIn(event) != "Bob") return@appRun
                network.cut()
                states.first { it == ConnectionState.CONNECTING }
                network.restore()
            }
            ann.connect()
            askedBy("Bob")
            ann.connections.first { it == 2 }
            askedBy("Cat")
            last.await()
            assertEquals(listOf("Bob", "Cat"), handled)
            ann.kill()
        }
    }

    @Test
    fun `a message comes again to the next run of an app that died before it was handled, and not after`() = runBlocking {
        val begun = CompletableDeferred<Unit>()
        val first = appRun {
            begun.complete(Unit)
            awaitCancellation()
        }
        first.connect()
        askedBy("Bob")
        begun.await()
        first.kill()

        val names = CopyOnWriteArrayList<String>()
        val seen = MutableStateFlow(0)
        val second = appRun {
            names += nameIn(it)
            seen.value++
        }
        second.connect()
        seen.first { it == 1 }
        askedBy("Cat")
        seen.first { it == 2 }
        second.disconnect()

        val third = appRun {
            names += nameIn(it)
            seen.value++
        }
        third.connect()
        askedBy("Dan")
        seen.first { it == 3 }
        assertEquals(listOf("Bob", "Cat", "Dan"), names)
        third.kill()
    }

    @Test
    fun `a newer connection of the device takes over, and the older one stays away`() = runBlocking {
        val first = appRun {}
        first.connect()
        first.connections.first { it == 1 }
        val second = appRun {}
        second.connect()
        first.states.first { it == ConnectionState.ELSEWHERE }
        second.connections.first { it == 1 }
        assertEquals(ConnectionState.CONNECTED, second.states.value)
        first.connect()
        second.states.first { it == ConnectionState.ELSEWHERE }
        first.kill()
        second.kill()
    }

    @Test
    fun `a token that the server calls expired is renewed`() = runBlocking {
        appRun {}.kill()
        val before = storage.get("session")
        server.restart(clockAheadMs = 7_200_000)
        val ann = appRun {}
        ann.connect()
        ann.connections.first { it == 1 }
        assertEquals(listOf("CONNECTING 0", "CONNECTING 1", "CONNECTED 1"), ann.told)
        assertNotEquals(before, storage.get("session"))
        ann.kill()
    }

    @Test
    fun `an app that is closed while it signs in does not connect, and keeps the session`() = runBlocking {
        val ann = Callsign(url, developmentPins(url), storage)
        val user = ann.signIn("ann@example.org", "Ann") {
            ann.close()
            sentCode(url, "ann@example.org")
        }
        assertEquals(ConnectionState.OFF, ann.connection.value)
        assertEquals(user.userId, ann.resume())
        assertEquals(ConnectionState.CONNECTED, ann.connection.first { it == ConnectionState.CONNECTED })
        ann.close()
    }

    @Test
    fun `a call whose invitation fell out of a full inbox rings after the next connection`() = runBlocking {
        BreakableNetwork(url).use { network ->
            val ann = server.app(storage, through = network.url)
            val annId = server.signIn(ann, "Ann")
            val bob = server.app()
            server.signIn(bob, "Bob")
            befriend(bob, ann)
            network.cut()
            ann.connection.first { it == ConnectionState.CONNECTING }
            val call = bob.call(annId)
            val filling = Run(Session.open(Server(url), storage), Server(url)) { awaitCancellation() }
            filling.connect()
            filling.connections.first { it == 1 }
            List(INBOX_MESSAGES) { async { filling.send("/user/queue/dev.x") } }.awaitAll()
            filling.kill()
            network.restore()
            ann.connect()
            assertEquals(call.callId, ann.ringing.first().callId)
            ann.close()
            bob.close()
        }
    }

    private companion object {
        const val INBOX_MESSAGES = 500
    }
}
