package callsign.app

import callsign.verify.LogRequest
import java.util.concurrent.ConcurrentLinkedQueue
import kotlinx.coroutines.runBlocking
import okhttp3.HttpUrl.Companion.toHttpUrl
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.extension.RegisterExtension

/** Which requests to the log have the access token, on a server that refuses lookups without. */
class LookupTokenTest {
    @JvmField
    @RegisterExtension
    val server = ServerExtension(mapOf("CALLSIGN_KT_REQUIRE_AUTH" to "1"))
    private val asked = ConcurrentLinkedQueue<Request>()

    /** Requests to any server come to the one. */
    private val http = OkHttpClient.Builder().addInterceptor { chain ->
        val request = chain.request()
        asked += request
        val own = server.url.toHttpUrl()
        val url = request.url.newBuilder().scheme(own.scheme).host(own.host).port(own.port).build()
        chain.proceed(request.newBuilder().url(url).build())
    }.build()

    @Test
    fun `lookups have the token, files of the log do not`() = runBlocking<Unit> {
        val ann = server.app(http = http)
        val bob = server.app()
        server.signIn(ann, "Ann")
        server.signIn(bob, "Bob")
        befriend(ann, bob)
        ann.call(listOf(checkNotNull(bob.userId))).end()
        val ofLog = asked.filter { !it.url.encodedPath.startsWith("/app/") && it.header("Upgrade") == null }
        val (lookups, files) = ofLog.partition { it.url.encodedPath.startsWith("/api/") }
        assertTrue(lookups.isNotEmpty())
        lookups.forEach { assertNotNull(it.header("authorization"), it.url.encodedPath) }
        assertTrue(files.any { it.url.encodedPath.startsWith("/tile/") })
        files.forEach { assertEquals(null, it.header("authorization"), it.url.encodedPath) }
    }

    @Test
    fun `no other server hears the token, and without a session a lookup goes without`() = runBlocking<Unit> {
        val storage = MemoryAppStorage()
        val session = Session.open(Server(server.url), storage)
        val sent = session.requestCode("ann@example.org", "Ann")
        session.verifyCode(sent.challengeId, server.codeFor("ann@example.org"))
        val transport = OkHttpTransport(http, session)
        suspend fun lookUpAt(url: String): Pair<Int, String?> {
            asked.clear()
            val status = transport.send(LogRequest("$url/api/get-public-keys", "{}", 10_000)).status
            return status to asked.single().header("authorization")
        }
        assertEquals(422 to "Bearer ${session.accessToken()}", lookUpAt(server.url))
        for (url in listOf("http://log.example", "${server.url}@log.example", server.url.dropLast(1)))
            assertEquals(401 to null, lookUpAt(url), url)
        session.logout()
        assertEquals(401 to null, lookUpAt(server.url))
    }
}
