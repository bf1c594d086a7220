package callsign.app

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test

class StompTest {
    @Test
    fun `headers are escaped and read back, but those of CONNECT are not`() {
        val headers = mapOf("a:b" to "c\\d\ne\rf:", "plain" to "")
        val text = formatFrame("SEND", headers, "{}")
        assertEquals("SEND\na\\cb:c\\\\d\\ne\\rf\\c\nplain:\n\n{}\u0000", text)
        val frame = parseFrame(text)
        assertEquals("SEND", frame.command)
        assertEquals(headers, frame.headers)
        assertEquals("{}", frame.body)
        assertEquals("CONNECT\nhost:a:b\n\n\u0000", formatFrame("CONNECT", mapOf("host" to "a:b")))
        assertEquals("a\\cb", parseFrame("CONNECTED\nserver:a\\cb\n\n\u0000").headers["server"])
    }

    @Test
    fun `the first of repeated headers counts`() {
        assertEquals(mapOf("id" to "1"), parseFrame("MESSAGE\nid:1\nid:2\n\n\u0000").headers)
    }

    @Test
    fun `what is no frame is refused`() {
        for (text in listOf("", "MESSAGE", "MESSAGE\nid\n\n\u0000", "MESSAGE\n:1\n\n\u0000", "MESSAGE\na:\\t\n\n", "MESSAGE\na:\\\n\n")) {
            val error = assertThrows(CallsignException::class.java) { parseFrame(text) }
            assertEquals("ANSWER_INVALID", error.code, text)
        }
    }
}
