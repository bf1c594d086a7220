/** A user of another SDK: a program that reads its instructions as lines of JSON (src/test/node/participant.mjs). */
package callsign.app

import java.io.File
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong
import kotlin.concurrent.thread
import kotlinx.coroutines.CompletableDeferred
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive

class Participant private constructor(command: List<String>, settings: Map<String, String>) : AutoCloseable {
    private val process: Process = ProcessBuilder(command).apply {
        environment().keys.retainAll(setOf("PATH", "HOME", "XDG_CACHE_HOME", "CALLSIGN_SWIFT_ROOT"))
        environment() += settings
        redirectError(ProcessBuilder.Redirect.INHERIT)
    }.start()
    private val lines = process.outputStream.bufferedWriter()
    private val waiting = ConcurrentHashMap<String, CompletableDeferred<JsonElement>>()
    private val count = AtomicLong()

    init {
        thread(isDaemon = true) {
            process.inputStream.bufferedReader().forEachLine(::take)
            for (each in waiting.values) each.completeExceptionally(IllegalStateException("the participant has ended"))
        }
    }

    /** What the act gives. Throws [IllegalStateException] with the code of its error. */
    suspend fun tell(act: String, vararg args: Any): JsonElement {
        val answer = CompletableDeferred<JsonElement>()
        val id = "${count.incrementAndGet()}"
        waiting[id] = answer
        val each = args.map { if (it is Number) JsonPrimitive(it) else JsonPrimitive("$it") }
        write(JsonObject(mapOf("id" to JsonPrimitive(id), "act" to JsonPrimitive(act), "args" to JsonArray(each))))
        return answer.await().also { waiting.remove(id) }
    }

    @Synchronized
    private fun write(line: JsonObject) {
        lines.write("$line\n")
        lines.flush()
    }

    suspend fun text(act: String, vararg args: Any): String = tell(act, *args).jsonPrimitive.content

    /** State, fingerprint and epoch of a call. */
    suspend fun view(act: String, vararg args: Any): JsonObject = tell(act, *args).jsonObject

    private fun take(line: String) {
        val members = Json.parseToJsonElement(line).jsonObject
        val answer = waiting.getValue(members.getValue("id").jsonPrimitive.content)
        val error = members["error"]
        if (error == null) answer.complete(members.getValue("value"))
        else answer.completeExceptionally(IllegalStateException(error.jsonPrimitive.content))
    }

    override fun close() {
        lines.close()
        if (!process.waitFor(10, TimeUnit.SECONDS)) process.destroyForcibly()
    }

    companion object {
        private val root = generateSequence(File("").absoluteFile, File::getParentFile)
            .first { File(it, "kotlin/callsign-app/src/test/node/participant.mjs").exists() }

        /** Of `@callsign/sdk/app`, in Node. */
        fun inTypeScript(url: String) =
            Participant(listOf("node", "$root/kotlin/callsign-app/src/test/node/participant.mjs"), mapOf("CALLSIGN_URL" to url))

        /** Whether the long suite has built the Swift package here. */
        val isSwiftBuilt: Boolean get() = File(root, "swift/.build/debug/Participant").exists()

        /** Of the package `CallsignApp`, in the root that its toolchain needs. */
        fun inSwift(url: String, stompTcp: String) = Participant(
            listOf("$root/scripts/swift.sh", "run", "--skip-build", "Participant"),
            mapOf("CALLSIGN_URL" to url, "CALLSIGN_STOMP_TCP" to stompTcp),
        )
    }
}
