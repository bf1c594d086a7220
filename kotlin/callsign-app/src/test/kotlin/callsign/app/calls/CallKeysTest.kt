package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.KeyBinding
import callsign.app.makeCallKey
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test

class CallKeysTest {
    private val keys = CallKeys()
    private val opened = makeCallKey()
    private val use = KeyBinding("1", 1)

    private fun refusalOf(act: () -> Unit): String = assertThrows(CallsignException::class.java) { act() }.code

    @Test
    fun `a key has one number, and one call, epoch and set`() {
        assertEquals(1, keys.put(1, opened.copyOf(), use, "a set"))
        assertEquals(1, keys.put(2, opened.copyOf(), use, "a set"))
        val others = listOf(
            KeyBinding("2", 1) to "a set",
            KeyBinding("1", 2) to "a set",
            use to "another set",
        )
        for ((binding, set) in others)
            assertEquals(LocalCode.CALL_KEY_REUSED, refusalOf { keys.put(3, opened.copyOf(), binding, set) })
        assertArrayEquals(opened, keys.copyOf(1))
    }

    @Test
    fun `a key that was wiped does not come again for another epoch, and one that was made here has a use, too`() {
        keys.put(1, opened.copyOf(), use, "a set")
        keys.wipe(1)
        assertEquals(LocalCode.CALL_KEY_REUSED, refusalOf { keys.put(2, opened.copyOf(), KeyBinding("1", 2), "a set") })
        keys.make(3)
        val made = keys.copyOf(3)
        keys.bind(made, use, "a set")
        assertEquals(LocalCode.CALL_KEY_REUSED, refusalOf { keys.put(4, made, KeyBinding("1", 2), "a set") })
    }
}
