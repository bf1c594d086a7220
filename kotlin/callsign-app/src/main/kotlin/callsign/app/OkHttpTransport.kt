package callsign.app

import callsign.verify.LogAnswer
import callsign.verify.LogRequest
import callsign.verify.LogTransport
import java.io.IOException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okio.Buffer

/**
 * Requests to the log by the app's own client, with its pinned certificates. Lookups have the access token, so that the server
 * counts this user and not everybody behind their address. Files of the log are asked for without one, as auditors do, and as
 * caches and mirrors may hear.
 */
internal class OkHttpTransport(http: OkHttpClient, private val session: Session) : LogTransport {
    private val http = http.newBuilder().followRedirects(false).build()

    override suspend fun send(request: LogRequest): LogAnswer {
        val body = request.body?.toByteArray()?.toRequestBody("application/json".toMediaType())
        val authorization = if (body == null) null else session.authorizationAt(request.url)
        val sent = Request.Builder()
            .url(request.url)
            .method(if (body == null) "GET" else "POST", body)
            .apply { authorization?.let { header("authorization", it) } }
            .build()
        return http.newCall(sent).answered().use { answer ->
            // A slow answer would hold up all that waits for the same thread.
            val octets = withContext(Dispatchers.IO) { octetsOf(answer, request.answerOctetsMax) }
            LogAnswer(answer.code, octets)
        }
    }

    private fun octetsOf(answer: Response, maxCount: Int): ByteArray {
        val octets = Buffer()
        val source = answer.body.source()
        while (source.read(octets, PIECE_OCTETS) >= 0)
            if (octets.size > maxCount) throw IOException("an answer has more than $maxCount bytes")
        return octets.readByteArray()
    }

    private companion object {
        const val PIECE_OCTETS = 8_192L
    }
}
