/** The built server of this project as a process of its own, in development: its inbox has the codes. */
package callsign.app

import java.io.File
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.delay
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody

class DevelopmentServer(
    private val dataFolder: File,
    settings: Map<String, String> = emptyMap(),
    clockAheadMs: Long = 0,
) : AutoCloseable {
    private val process: Process = ProcessBuilder("node", program.path, "--dev").apply {
        withoutForeignSettings()
        environment() += mapOf(
            "CALLSIGN_DATA_DIR" to dataFolder.path,
            "CALLSIGN_HTTP_PORT" to "0",
            "CALLSIGN_GRPC_PORT" to "0",
            "CALLSIGN_ADMIN_PORT" to "0",
            "CALLSIGN_SERVER_API_PORT" to "0",
            "CALLSIGN_STOMP_TCP_PORT" to "0",
            "CALLSIGN_RATE_LIMITS" to "off",
            "CALLSIGN_FRONTS" to "0",
        ) + settings
        if (clockAheadMs != 0L) {
            val shiftedClock = File(root, "dist/test/support/shifted-clock.js").toURI()
            environment() += mapOf("NODE_OPTIONS" to "--import=$shiftedClock", "CLOCK_AHEAD_MS" to "$clockAheadMs")
        }
        redirectError(File(dataFolder, "stderr"))
    }.start()

    /** Its first line says that it is ready. */
    private val ready: JsonObject =
        process.inputStream.bufferedReader().readLine()?.let { Json.parseToJsonElement(it).jsonObject }
            ?: error("the server ended: ${File(dataFolder, "stderr").readText()}")

    val url: String = checkNotNull(ready.text("http"))

    /** Where it speaks STOMP without WebSocket, such as `127.0.0.1:41337`. */
    val stompTcp: String = checkNotNull(ready.text("stompTcp"))

    private val serverApi: String = checkNotNull(ready.text("serverApi"))

    /** A key of the server API with these scopes, as the operator makes it. */
    fun newServerKey(vararg scopes: String): String {
        val script = File(root, "dist/scripts/server-key.js").path
        val arguments = listOf("create", "--dev", "--url", serverApi, "--name", "test", "--scopes", scopes.joinToString(","))
        val command = ProcessBuilder(listOf("node", script) + arguments).withoutForeignSettings()
        command.environment()["CALLSIGN_DATA_DIR"] = dataFolder.path
        val printed = command.start().inputStream.bufferedReader().readText().trim()
        check(printed.startsWith("csk_")) { "no key: $printed" }
        return printed
    }

    /** What the backend with the key is answered. */
    fun backend(key: String, method: String, path: String, body: String): JsonObject {
        val request = Request.Builder().url("$serverApi/server/api/v1/$path").header("authorization", "Bearer $key")
            .method(method, body.toRequestBody("application/json".toMediaType())).build()
        return OkHttpClient().newCall(request).execute().use { Json.parseToJsonElement(it.body.string()).jsonObject }
    }

    /** The code leaves after the answer to the request that asked for it. */
    suspend fun codeFor(email: String): String {
        while (true) {
            val request = Request.Builder().url("$url/dev/inbox?to=$email").build()
            val inbox = OkHttpClient().newCall(request).execute().use { Json.parseToJsonElement(it.body.string()) }
            val letters = inbox.jsonObject.getValue("items").jsonArray
            if (letters.isNotEmpty()) return checkNotNull(letters.first().jsonObject.text("otp"))
            delay(10)
        }
    }

    override fun close() {
        process.destroy()
        process.waitFor(10, TimeUnit.SECONDS)
    }

    companion object {
        private val root = generateSequence(File("").absoluteFile, File::getParentFile)
            .first { File(it, "test/vectors").isDirectory }
        private val program = File(root, "dist/src/main.js")

        /** The server and its commands refuse settings that they do not know, such as those of these tests. */
        private fun ProcessBuilder.withoutForeignSettings() = apply { environment().keys.retainAll(setOf("PATH", "HOME")) }

        /** After `npm ci` and a build. */
        val isBuilt: Boolean get() = program.exists() && File(root, "node_modules").isDirectory
    }
}
