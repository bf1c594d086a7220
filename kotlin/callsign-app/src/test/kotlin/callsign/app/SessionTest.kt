package callsign.app

import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.extension.RegisterExtension

/** Sessions on the built server of this project; skipped where it is not built. */
class SessionTest {
    @JvmField
    @RegisterExtension
    val server = ServerExtension()
    private var aheadMs = 0L
    private val storage = MemoryAppStorage()

    private suspend fun session(of: AppStorage = storage): Session =
        Session.open(Server(server.url, nowMs = { System.currentTimeMillis() + aheadMs }), of)

    private suspend fun Session.signIn(email: String) {
        val sent = requestCode(email, "Ann")
        verifyCode(sent.challengeId, server.codeFor(email))
    }

    private suspend fun Session.devices() = request("GET", "devices") as JsonObject

    private suspend fun codeOf(act: suspend () -> Unit): String? = try {
        act()
        null
    } catch (error: CallsignException) {
        error.code
    }

    @Test
    fun `a person signs in by a code, and is signed in after a restart`() = runBlocking<Unit> {
        val session = session()
        assertEquals("SIGNED_OUT", codeOf { session.devices() })
        val sent = session.requestCode("ann@example.org", "Ann")
        val otp = server.codeFor("ann@example.org")
        assertEquals(otp.length, sent.otpLength)
        val wrong = otp.map { if (it == '9') '0' else it + 1 }.joinToString("")
        assertEquals("OTP_INVALID", codeOf { session.verifyCode(sent.challengeId, wrong) })
        session.verifyCode(sent.challengeId, otp)
        assertNotNull(session.userId)
        assertEquals(32, session.challenge?.size)
        session.devices()
        val again = session()
        assertEquals(session.userId, again.userId)
        again.devices()
    }

    @Test
    fun `tokens are renewed once for all requests, and kept before they are used`() = runBlocking<Unit> {
        val session = session()
        session.signIn("ann@example.org")
        val first = session.accessToken()
        assertEquals(first, session.accessToken())
        aheadMs = 3_000_000
        val tokens = coroutineScope { List(8) { async { session.accessToken() } }.awaitAll() }
        assertEquals(1, tokens.distinct().size)
        assertNotEquals(first, tokens.first())
        assertEquals(tokens.first(), session().accessToken())
        session.devices()
    }

    @Test
    fun `a logout ends the session here and on the server`() = runBlocking<Unit> {
        val session = session()
        session.signIn("ann@example.org")
        val copy = MemoryAppStorage().also { it.put("session", storage.get("session")) }
        session.logout()
        assertNull(session.userId)
        assertEquals("SIGNED_OUT", codeOf { session.devices() })
        val left = session(copy)
        assertNotNull(left.userId)
        assertTrue(codeOf { left.devices() } in setOf("TOKEN_INVALID", "SESSION_REVOKED"))
        assertNull(left.userId)
        session.signIn("ann@example.org")
        session.devices()
    }

    @Test
    fun `a damaged session in the storage is an error`() = runBlocking<Unit> {
        for (text in listOf("", "{", "[]", "{}", """{"refreshToken":"x","accessToken":"y"}""")) {
            storage.put("session", text)
            assertEquals("STORAGE_CORRUPT", codeOf { session() }, text)
        }
    }
}
