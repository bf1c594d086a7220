package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.keyUnsupported
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test

class LeavingOutTest {
    private val told = mutableListOf<Pair<ULong, ULong>>()

    /** Refuses the first of [old] whom it is asked for, as sealing does, and else gives those whom it was asked for. */
    private fun asking(people: List<ULong>, vararg old: ULong): List<ULong> = runBlocking {
        leavingOut(people, { userId, deviceId -> told += userId to deviceId }) { able ->
            old.find { it in able }?.let { throw keyUnsupported(it, 10u * it, "is too old") }
            able
        }
    }

    @Test
    fun `a call goes on without each person whom nothing can be sealed for`() {
        assertEquals(listOf<ULong>(1u, 3u), asking(listOf(1u, 2u, 3u, 4u), 2u, 4u))
        assertEquals(listOf<Pair<ULong, ULong>>(2uL to 20uL, 4uL to 40uL), told)
    }

    @Test
    fun `nobody is called where nobody is left, or another person's device is the reason`() {
        assertThrows(CallsignException::class.java) { asking(listOf(2u, 4u), 2u, 4u) }
        assertThrows(CallsignException::class.java) {
            runBlocking { leavingOut(listOf(1uL, 2uL), { _, _ -> }) { throw keyUnsupported(7u, 70u, "is this device's") } }
        }
    }
}
