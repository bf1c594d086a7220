/** HTTP as the client uses it: one exchange, bounded in octets. The default runs on `HttpURLConnection` alone. */
package callsign.verify

import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asExecutor
import kotlinx.coroutines.suspendCancellableCoroutine

/** A request: a POST of JSON where [body] is not null, else a GET. Answers above [answerOctetsMax] are of no use. */
public class LogRequest(public val url: String, public val body: String?, public val answerOctetsMax: Int)

/** The answer of any HTTP status. */
public class LogAnswer(public val status: Int, public val body: ByteArray)

/**
 * Sends requests, to add headers or to pin certificates. It follows no redirects, throws [IOException] without an answer or
 * above `answerOctetsMax`, and stops when it is cancelled.
 */
public fun interface LogTransport {
    public suspend fun send(request: LogRequest): LogAnswer
}

/** The platform's own HTTP client. [connectTimeoutMs] and [readTimeoutMs] bound a single step; `LogClient` bounds them all. */
public class HttpUrlTransport(
    private val connectTimeoutMs: Int = 10_000,
    private val readTimeoutMs: Int = 20_000,
) : LogTransport {
    override suspend fun send(request: LogRequest): LogAnswer = suspendCancellableCoroutine { waiting ->
        val connection = URL(request.url).openConnection() as HttpURLConnection
        waiting.invokeOnCancellation { connection.disconnect() }
        Dispatchers.IO.asExecutor().execute {
            try {
                waiting.resume(exchange(connection, request))
            } catch (error: IOException) {
                waiting.resumeWithException(error)
            } finally {
                connection.disconnect()
            }
        }
    }

    private fun exchange(connection: HttpURLConnection, request: LogRequest): LogAnswer {
        connection.connectTimeout = connectTimeoutMs
        connection.readTimeout = readTimeoutMs
        connection.instanceFollowRedirects = false
        connection.useCaches = false
        val body = request.body
        if (body != null) {
            connection.requestMethod = "POST"
            connection.doOutput = true
            connection.setRequestProperty("content-type", "application/json")
            connection.outputStream.use { it.write(body.toByteArray()) }
        }
        val status = connection.responseCode
        val stream: InputStream? = if (status < 400) connection.inputStream else connection.errorStream
        return LogAnswer(status, stream?.use { readBounded(it, request.answerOctetsMax) } ?: ByteArray(0))
    }

    private fun readBounded(stream: InputStream, octetsMax: Int): ByteArray {
        val octets = ByteArrayOutputStream()
        val piece = ByteArray(8_192)
        while (true) {
            val read = stream.read(piece)
            if (read < 0) return octets.toByteArray()
            octets.write(piece, 0, read)
            if (octets.size() > octetsMax) throw IOException("an answer has more than $octetsMax bytes")
        }
    }
}
