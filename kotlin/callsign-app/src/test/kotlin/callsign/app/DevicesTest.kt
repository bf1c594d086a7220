package callsign.app

import java.io.File
import java.io.IOException
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.filterNotNull
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

/** Devices and their lists on the built server; skipped where it is not built. */
@Timeout(120)
class DevicesTest {
    private val url get() = checkNotNull(server).url

    private suspend fun app(storage: AppStorage) = Callsign(url, developmentPins(url), storage)

    private suspend fun Callsign.signIn(address: String) = signIn(address, "Ann") { sentCode(url, address) }

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
            val dying = app(DyingStorage(storage, writes))
            val failure = runCatching { dying.signIn(address) }.exceptionOrNull()
            runCatching { dying.close() }
            val again = app(storage)
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
        val first = app(MemoryAppStorage())
        first.signIn("bob@example.org")
        val second = app(MemoryAppStorage())
        second.signIn("bob@example.org")
        val state = second.devices.listState.filterIsInstance<OwnListState.Waiting>().first()
        val waiting = first.devices.listState.filterIsInstance<OwnListState.Listed>().first { it.waiting.isNotEmpty() }
            .waiting.single()
        assertEquals(state.code, waiting.code)
        assertEquals(second.deviceId, waiting.deviceId)
        first.devices.approve(waiting)
        second.devices.listState.first { it == OwnListState.Listed(emptyList()) }
        second.devices.remove(checkNotNull(first.deviceId))
        first.connection.first { it == ConnectionState.OFF }
        assertEquals(null, first.userId)
        second.close()
    }

    private companion object {
        @TempDir
        @JvmStatic
        lateinit var folder: File
        var server: DevelopmentServer? = null

        @BeforeAll
        @JvmStatic
        fun start() {
            assumeTrue(DevelopmentServer.isBuilt, "the server is not built")
            server = DevelopmentServer(folder)
        }

        @AfterAll
        @JvmStatic
        fun stop() {
            server?.close()
        }
    }
}
