package callsign.app

import java.io.IOException
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.filterNotNull
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Devices and their lists on the built server; skipped where it is not built. */
@Timeout(120)
class DevicesTest {
    private suspend fun Callsign.signIn(address: String) = server.signIn(this, "Ann", address)

    /** Fails from a write on, as if the app had been killed before it. */
    private class DyingStorage(private val kept: AppStorage, private var writesLeft: Int) : AppStorage {
        override suspend fun get(key: String): String? = kept.get(key)

        override suspend fun put(key: String, text: String?) {
            if (writesLeft-- <= 0) throw IOException("the app is dead")
            kept.put(key, text)
        }
    }

    @Test
    fun `an app that dies before any write of its first sign-in is one listed device after the next`() = runBlocking {
        var writes = 0
        while (true) {
            val address = "ann-$writes@example.org"
            val storage = MemoryAppStorage()
            val dying = server.app(DyingStorage(storage, writes))
            val failure = runCatching { dying.signIn(address) }.exceptionOrNull()
            runCatching { dying.close() }
            val again = server.app(storage)
            if (again.resume() == null) again.signIn(address)
            assertEquals(OwnListState.Listed(emptyList()), again.devices.listState.filterNotNull().first(), address)
            assertEquals(listOf(again.deviceId), again.devices.list().map { it.deviceId }, address)
            again.close()
            if (failure == null) break
            assertEquals("STORAGE_FAILED", (failure as? CallsignException)?.code, "$failure")
            writes++
        }
        // Tokens, address, keys, list, device, and the list taken away.
        assertTrue(writes >= 6)
    }

    @Test
    fun `a second device waits until the first one approves it, by a code that both show`() = runBlocking {
        val first = server.app()
        first.signIn("bob@example.org")
        val second = server.app()
        second.signIn("bob@example.org")
        val state = second.devices.listState.filterIsInstance<OwnListState.Waiting>().first()
        val waiting = first.devices.listState.filterIsInstance<OwnListState.Listed>().first { it.waiting.isNotEmpty() }
            .waiting.single()
        assertEquals(state.code, waiting.code)
        assertEquals(second.deviceId, waiting.deviceId)
        first.devices.approve(waiting)
        second.devices.listState.first { it == OwnListState.Listed(emptyList()) }
        second.devices.remove(checkNotNull(first.deviceId))
        first.user.first { it == null }
        assertEquals(null, first.userId)
        second.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
