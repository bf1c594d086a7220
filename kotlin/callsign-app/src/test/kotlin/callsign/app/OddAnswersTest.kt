package callsign.app

import com.sun.net.httpserver.HttpServer
import java.net.InetSocketAddress
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** Answers that no server of ours gives: the app hears a [CallsignException]. */
class OddAnswersTest {
    @Test
    fun `what is no JSON, cut or endless is refused`() = runBlocking {
        for (text in listOf("<html>", "{\"userId\"", " ", "[", "[]", "null", "7", "x".repeat(9_000_000))) {
            serving(200, text) { server ->
                assertEquals("ANSWER_INVALID", codeOf { server.request("GET", "user") }, text.take(20))
                assertEquals("ANSWER_INVALID", codeOf { server.request("DELETE", "friend/1") }, text.take(20))
            }
        }
    }

    @Test
    fun `a redirect is not followed`() = runBlocking {
        for (status in listOf(301, 302, 303, 307, 308)) {
            val followed = AtomicInteger()
            serving(200, "{}", onRequest = { followed.incrementAndGet() }) { elsewhere ->
                serving(status, "", location = elsewhere.prefix) { server ->
                    val code = codeOf { server.request("POST", "refresh-token", JsonObject(emptyMap())) }
                    assertEquals("ANSWER_INVALID", code, "$status")
                }
            }
            assertEquals(0, followed.get(), "$status")
        }
    }

    private suspend fun codeOf(act: suspend () -> Unit): String? = try {
        act()
        null
    } catch (error: CallsignException) {
        error.code
    }

    private suspend fun serving(
        status: Int,
        text: String,
        location: String? = null,
        onRequest: () -> Unit = {},
        act: suspend (Server) -> Unit,
    ) {
        val http = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        http.createContext("/") { exchange ->
            onRequest()
            location?.let { exchange.responseHeaders.add("location", "$it/taken") }
            runCatching {
                val octets = text.toByteArray()
                exchange.sendResponseHeaders(status, if (octets.isEmpty()) -1L else octets.size.toLong())
                if (octets.isNotEmpty()) exchange.responseBody.write(octets)
            }
            exchange.close()
        }
        http.start()
        try {
            act(Server("http://127.0.0.1:${http.address.port}"))
        } finally {
            http.stop(0)
        }
    }
}
