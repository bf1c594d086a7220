package callsign.app

import callsign.app.CallsignException.LocalCode
import callsign.verify.LogKeys
import com.sun.net.httpserver.HttpsConfigurator
import com.sun.net.httpserver.HttpsServer
import java.io.File
import java.io.IOException
import java.net.InetSocketAddress
import java.security.KeyFactory
import java.security.KeyStore
import java.security.MessageDigest
import java.security.PrivateKey
import java.security.cert.CertificateFactory
import java.security.cert.X509Certificate
import java.security.spec.PKCS8EncodedKeySpec
import java.util.Base64
import java.util.concurrent.atomic.AtomicInteger
import javax.net.ssl.KeyManagerFactory
import javax.net.ssl.SSLContext
import javax.net.ssl.SSLPeerUnverifiedException
import javax.net.ssl.TrustManagerFactory
import javax.net.ssl.X509TrustManager
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import okhttp3.CertificatePinner
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertInstanceOf
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Against servers with the project's test certificates, whose authority the client trusts: the pins alone decide. */
@Timeout(120)
class TlsPinsTest {
    @Test
    fun `the server's key, a spare beside it and its authority's key are good`() = runBlocking {
        for (pins in listOf(listOf(SERVER), listOf(STRANGER, SERVER), listOf(SERVER, STRANGER), listOf(AUTHORITY), emptyList()))
            assertEquals(1, requestsWith(pins).first, "$pins")
    }

    @Test
    fun `another key is refused before anything is sent, and is not tried again`() = runBlocking {
        for (pins in listOf(listOf(STRANGER), listOf(STRANGER, OTHER))) {
            val (heard, error) = requestsWith(pins)
            assertEquals(0, heard, "$pins")
            assertEquals(LocalCode.NO_ANSWER, error?.code)
            assertInstanceOf(SSLPeerUnverifiedException::class.java, error?.cause)
        }
    }

    @Test
    fun `pins of the app's own client count as well`() = runBlocking {
        fun own(pin: String) = trusting.newBuilder()
            .certificatePinner(CertificatePinner.Builder().add("localhost", pin).build())
            .build()
        assertEquals(0, requestsWith(emptyList(), own(STRANGER)).first)
        assertEquals(1, requestsWith(listOf(STRANGER), own(SERVER)).first)
        assertEquals(1, requestsWith(listOf(SERVER), own(STRANGER)).first)
    }

    @Test
    fun `a pin of another form is refused, and pins for a server without TLS`() {
        val odd = listOf("", SERVER.removePrefix("sha256/"), SERVER.dropLast(1), "sha1/${"A".repeat(27)}=", "sha256/AAAA")
        for (pin in odd)
            assertThrows(IllegalArgumentException::class.java, { Server("https://localhost", tlsPins = listOf(SERVER, pin)) }, pin)
        assertThrows(IllegalArgumentException::class.java) { Server("http://localhost", tlsPins = listOf(SERVER)) }
    }

    @Test
    fun `requests, the socket and the log go to the pinned server, and not to one with another key`() = runBlocking {
        val storage = MemoryAppStorage()
        val pins = logKeys()
        val app = Callsign(server.url, pins, storage, http = trusting, tlsPins = listOf(STRANGER, SERVER))
        app.signIn(ADDRESS, "Ann") { CODE }
        app.connection.first { it == ConnectionState.CONNECTED }
        app.devices.checkKey()
        app.close()

        val refused = CompletableDeferred<IOException?>()
        val watched = trusting.newBuilder().addInterceptor { chain ->
            val isSocket = chain.request().header("Upgrade") != null
            try {
                chain.proceed(chain.request()).also { if (isSocket) refused.complete(null) }
            } catch (error: IOException) {
                if (isSocket) refused.complete(error)
                throw error
            }
        }.build()
        val intercepted = Callsign(server.url, pins, storage, http = watched, tlsPins = listOf(STRANGER))
        intercepted.resume()
        assertInstanceOf(SSLPeerUnverifiedException::class.java, refused.await())
        intercepted.close()
    }

    private suspend fun logKeys(): LogKeys {
        val log = (Server(server.url, trusting).request("GET", "meta") as JsonObject).member("log")
        return LogKeys.ofVerifierKey(log.needText("vkey"), log.needText("vrfPublicKey"))
    }

    /** How many requests the server has heard of one, and why it failed. */
    private suspend fun requestsWith(pins: List<String>, http: OkHttpClient = trusting): Pair<Int, CallsignException?> {
        val heard = AtomicInteger()
        val https = HttpsServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        https.httpsConfigurator = HttpsConfigurator(serverTls)
        https.createContext("/") { exchange ->
            heard.incrementAndGet()
            exchange.sendResponseHeaders(200, -1)
            exchange.close()
        }
        https.start()
        val error = try {
            Server("https://localhost:${https.address.port}", http, tlsPins = pins).request("GET", "user")
            null
        } catch (error: CallsignException) {
            error
        } finally {
            https.stop(0)
        }
        return heard.get() to error
    }

    private companion object {
        const val ADDRESS = "ann@example.org"
        const val CODE = "424242"
        val folder = File(projectRoot, "test/support/tls")
        val SERVER = pinOf("server")
        val AUTHORITY = pinOf("ca")

        /** Of the same authority, and of none. */
        val OTHER = pinOf("other")
        val STRANGER = pinOf("stranger")

        /** Trusts the authority of the test certificates alone. */
        val trusting: OkHttpClient = run {
            val store = KeyStore.getInstance(KeyStore.getDefaultType())
            store.load(null)
            store.setCertificateEntry("authority", certificateOf("ca"))
            val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm()).apply { init(store) }
            val tls = SSLContext.getInstance("TLS").apply { init(null, trust.trustManagers, null) }
            OkHttpClient.Builder().sslSocketFactory(tls.socketFactory, trust.trustManagers.single() as X509TrustManager).build()
        }

        val serverTls: SSLContext = run {
            val store = KeyStore.getInstance(KeyStore.getDefaultType())
            store.load(null)
            store.setKeyEntry("server", keyOf("server"), CharArray(0), arrayOf(certificateOf("server")))
            val keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm()).apply { init(store, CharArray(0)) }
            SSLContext.getInstance("TLS").apply { init(keys.keyManagers, null, null) }
        }

        fun certificateOf(name: String): X509Certificate =
            File(folder, "$name.crt").inputStream().use {
                CertificateFactory.getInstance("X.509").generateCertificate(it) as X509Certificate
            }

        fun keyOf(name: String): PrivateKey {
            val lines = File(folder, "$name.key").readLines().filterNot { it.startsWith("-----") }
            val octets = Base64.getDecoder().decode(lines.joinToString(""))
            return KeyFactory.getInstance("EC").generatePrivate(PKCS8EncodedKeySpec(octets))
        }

        fun pinOf(name: String): String {
            val digest = MessageDigest.getInstance("SHA-256").digest(certificateOf(name).publicKey.encoded)
            return "sha256/${Base64.getEncoder().encodeToString(digest)}"
        }

        @JvmField
        @RegisterExtension
        val server = ServerExtension(
            mapOf(
                "CALLSIGN_TLS_CERT" to File(folder, "server.crt").path,
                "CALLSIGN_TLS_KEY" to File(folder, "server.key").path,
                "CALLSIGN_TEST_IDENTIFIERS" to bodyOf(mapOf(ADDRESS to CODE)).toString(),
            ),
        )
    }
}
