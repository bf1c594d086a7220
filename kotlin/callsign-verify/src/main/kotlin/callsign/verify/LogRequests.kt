/** The log's HTTP operations as a client uses them. Answers are not verified here, only bounded in time and octets. */
package callsign.verify

import java.io.IOException
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** No network, a refusal of the server, or an answer of something that is not the log's server. */
internal class NoAnswer(message: String, val status: Int? = null, val code: String? = null) : Exception(message) {
    fun toUnanswered(): Unanswered = Unanswered(message.orEmpty(), status, code)
}

/** [url] is the log's prefix; a request with its answer may take [timeoutMs]. Every operation throws [NoAnswer]. */
internal class LogRequests(url: String, private val transport: LogTransport, private val timeoutMs: Long) {
    private val prefix = url.trimEnd('/')

    /** The JSON that answers a POST of [body]. */
    suspend fun post(path: String, body: JsonElement): JsonElement {
        val answer = request(path, body.toString(), ANSWER_OCTETS_MAX)
        val json = parseJson(textIn(answer.body))
        if (answer.status != 200) {
            val code = textOf((json as? JsonObject)?.get("code"))
            throw NoAnswer("$path answers ${answer.status}", answer.status, code)
        }
        return json ?: throw NoAnswer("$path answers something else than JSON", answer.status)
    }

    /** The log's current signed note. */
    suspend fun checkpoint(): String {
        val answer = request("checkpoint", null, NOTE_OCTETS_MAX)
        if (answer.status == 200) return textIn(answer.body)
        throw NoAnswer("checkpoint answers ${answer.status}", answer.status)
    }

    /** The hashes of a tile. A log may drop a partial tile once it has the full one, which begins with it. */
    suspend fun tile(tile: Tile): ByteArray = try {
        hashes(tile)
    } catch (error: NoAnswer) {
        if (tile.width == TILE_WIDTH || error.status == null) throw error
        hashes(tile.copy(width = TILE_WIDTH)).copyOf(tile.width * HASH_OCTETS)
    }

    /** The entries of a bundle. A log may drop a partial one once it has the full one, which begins with it. */
    suspend fun entries(bundle: EntryBundle): List<ByteArray> = try {
        entriesIn(bundle)
    } catch (error: NoAnswer) {
        if (bundle.width == TILE_WIDTH || error.status == null) throw error
        entriesIn(bundle.copy(width = TILE_WIDTH)).take(bundle.width)
    }

    private suspend fun entriesIn(bundle: EntryBundle): List<ByteArray> {
        val path = formatBundlePath(bundle)
        val answer = request(path, null, bundle.width * ENTRY_OCTETS_MAX)
        if (answer.status != 200) throw NoAnswer("$path answers ${answer.status}", answer.status)
        val entries = try {
            parseBundle(answer.body)
        } catch (error: LogException) {
            throw NoAnswer("$path is not of its form: ${error.message}")
        }
        if (entries.size == bundle.width) return entries
        throw NoAnswer("$path has ${entries.size} entries instead of ${bundle.width}", answer.status)
    }

    private suspend fun hashes(tile: Tile): ByteArray {
        val path = formatTilePath(tile)
        val length = tile.width * HASH_OCTETS
        val answer = request(path, null, length)
        if (answer.status != 200) throw NoAnswer("$path answers ${answer.status}", answer.status)
        if (answer.body.size == length) return answer.body
        throw NoAnswer("$path has ${answer.body.size} octets instead of $length", answer.status)
    }

    private suspend fun request(path: String, body: String?, octetsMax: Int): LogAnswer {
        val answer = try {
            withTimeoutOrNull(timeoutMs) { transport.send(LogRequest("$prefix/$path", body, octetsMax)) }
        } catch (error: IOException) {
            throw NoAnswer("$path cannot be fetched: ${error.message}")
        }
        if (answer == null) throw NoAnswer("$path was not answered in $timeoutMs ms")
        if (answer.body.size > octetsMax) throw NoAnswer("an answer has more than $octetsMax bytes", answer.status)
        return answer
    }

    /** A byte order mark before a text is no part of it. */
    private fun textIn(octets: ByteArray): String = octets.toString(Charsets.UTF_8).removePrefix("\ufeff")

    private companion object {
        /** The longest key history, a thousand keys of 1,024 characters, has 2.3 MB in a log of a million entries. */
        const val ANSWER_OCTETS_MAX = 4 * 1024 * 1024
        const val NOTE_OCTETS_MAX = 1_000_000

        /** In a bundle, with its length, of the longest key that a log of this kind takes: 1,024 characters. */
        const val ENTRY_OCTETS_MAX = 2 + 88 + 1 + 1_024 + 1
    }
}
