/** The parts that touch a disk or a network: stores of files, and the platform's HTTP client. */
package callsign.verify

import com.sun.net.httpserver.HttpExchange
import com.sun.net.httpserver.HttpServer
import java.io.File
import java.io.IOException
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.util.concurrent.CountDownLatch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

class FileStoresTest {
    @TempDir
    lateinit var folder: File

    private val checkpoint = SignedCheckpoint("log.example/kt ../..", 7, "AAAA", "note\n\n\u2014 x\n")

    @Test
    fun `checkpoints outlast the store, each log apart`() = runBlocking {
        val kept = KeptCheckpoint(checkpoint, listOf("one\n", "two\n"), 1_790_000_000_000)
        val other = KeptCheckpoint(checkpoint.copy(origin = "other.example", treeSize = SAFE_MAX))
        FileCheckpointStore(File(folder, "log")).run {
            assertNull(get(checkpoint.origin))
            put(KeptCheckpoint(checkpoint.copy(treeSize = 3)))
            put(kept)
            put(other)
        }
        val reopened = FileCheckpointStore(File(folder, "log"))
        assertEquals(kept, reopened.get(checkpoint.origin))
        assertEquals(other, reopened.get("other.example"))
    }

    @Test
    fun `a write that was cut short leaves the state before it`() = runBlocking {
        val store = FileCheckpointStore(folder)
        store.put(KeptCheckpoint(checkpoint))
        val file = folder.listFiles().orEmpty().single()
        File(folder, "${file.name}.new").writeText("""{"origin":"log.exa""")
        assertEquals(checkpoint, FileCheckpointStore(folder).get(checkpoint.origin)?.checkpoint)
        store.put(KeptCheckpoint(checkpoint.copy(treeSize = 8)))
        assertEquals(8L, store.get(checkpoint.origin)?.checkpoint?.treeSize)
    }

    @Test
    fun `a damaged file is an error, and no empty memory`() = runBlocking {
        val store = FileCheckpointStore(folder)
        store.put(KeptCheckpoint(checkpoint))
        val file = folder.listFiles().orEmpty().single()
        val good = file.readText()
        for (damaged in listOf("", "{", good.dropLast(1), "[]", "{}", good.replace("7", "\"seven\""))) {
            file.writeText(damaged)
            assertEquals(LogErrorCode.MALFORMED, codeOf { runBlocking { store.get(checkpoint.origin) } }, damaged)
        }
    }

    @Test
    fun `what is known of a contact outlasts the store`() = runBlocking {
        val events = DeviceEvent.Kind.entries.map { DeviceEvent(it, "5") } + DeviceEvent(DeviceEvent.Kind.RESET)
        val known = KnownUser("7", listOf(KnownDevice("5", "AAAA")), KnownList("list", "hash", 4, 3, 2), events)
        FileKnownUserStore(folder).put(known)
        assertEquals(known, FileKnownUserStore(folder).get("7"))
        val unlisted = known.copy(list = null, events = emptyList())
        FileKnownUserStore(folder).put(unlisted)
        assertEquals(unlisted, FileKnownUserStore(folder).get("7"))
        assertNull(FileKnownUserStore(folder).get("8"))
    }
}

class StrictJsonTest {
    @Test
    fun `only JSON is read, down to 32 levels`() {
        for (text in listOf("null", "7", "-0.5e+3", "\"a\\\"[[\"", "[]", "{\"a\":[true,{}]}", "[".repeat(32) + "]".repeat(32)))
            assertTrue(parseJson(text) != null, text)
        val deep = listOf(33, 1_000_000).map { "[".repeat(it) + "]".repeat(it) }
        for (text in listOf("", "<html>", "abc", "[abc]", "{\"a\":b}", "{a:1}", "'a'", "01", "[1,]", "{", "[]]") + deep)
            assertNull(parseJson(text), text.take(40))
    }
}

class HttpUrlTransportTest {
    private val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
    private val prefix = "http://127.0.0.1:${server.address.port}"
    private val transport = HttpUrlTransport()

    @AfterEach
    fun stop() = server.stop(0)

    private fun serve(handle: (HttpExchange) -> Unit) {
        server.createContext("/") { exchange ->
            handle(exchange)
            exchange.close()
        }
        server.start()
    }

    private fun HttpExchange.answer(status: Int, body: ByteArray) {
        sendResponseHeaders(status, if (body.isEmpty()) -1 else body.size.toLong())
        if (body.isNotEmpty()) responseBody.write(body)
    }

    private fun send(body: String?, octetsMax: Int = 1_000): LogAnswer =
        runBlocking { transport.send(LogRequest("$prefix/api/x", body, octetsMax)) }

    @Test
    fun `a body is posted as JSON, and any status is an answer`() {
        serve { exchange ->
            val body = exchange.requestBody.readBytes()
            val type = exchange.requestHeaders.getFirst("content-type")
            exchange.answer(if (body.isEmpty()) 404 else 200, "${exchange.requestMethod} $type ".toByteArray() + body)
        }
        val posted = send("{\"a\":1}")
        assertEquals(200, posted.status)
        assertEquals("POST application/json {\"a\":1}", String(posted.body))
        val fetched = send(null)
        assertEquals(404, fetched.status)
        assertTrue(String(fetched.body).startsWith("GET "))
    }

    @Test
    fun `redirects are not followed, and an empty answer is one`() {
        serve { exchange ->
            exchange.responseHeaders.set("location", "$prefix/elsewhere")
            exchange.answer(if (exchange.requestURI.path == "/elsewhere") 200 else 302, ByteArray(0))
        }
        assertEquals(302, send(null).status)
    }

    @Test
    fun `an answer above its bound is cut off`() {
        serve { exchange -> exchange.answer(200, ByteArray(1_000)) }
        assertArrayEquals(ByteArray(1_000), send(null, 1_000).body)
        assertThrows(IOException::class.java) { send(null, 999) }
    }

    @Test
    fun `a client without a server has no answer, and one whose server is silent stops waiting`() = runBlocking {
        val keys = readVectors("derived-kt-e2e").let { LogKeys.ofVerifierKey(it.text("log_vkey"), it.text("vrf_pk_base64")) }
        fun clientOf(url: String) = LogClient(keys, url, MemoryCheckpointStore(), transport, timeoutMs = 200)
        val free = ServerSocket(0).use { it.localPort }
        assertTrue(clientOf("http://127.0.0.1:$free").refreshCheckpoint() is Unanswered)
        val done = CountDownLatch(1)
        serve { done.await() }
        val silent = clientOf(prefix).refreshCheckpoint()
        done.countDown()
        assertTrue(silent is Unanswered && "200 ms" in silent.detail, "$silent")
    }

    @Test
    fun `an age without witnesses is refused`() {
        val keys = readVectors("derived-kt-e2e").let { LogKeys.ofVerifierKey(it.text("log_vkey"), it.text("vrf_pk_base64")) }
        val code = codeOf { LogClient(keys, prefix, MemoryCheckpointStore(), transport, maxAgeMs = 1) }
        assertEquals(LogErrorCode.KEY_INVALID, code)
    }
}
