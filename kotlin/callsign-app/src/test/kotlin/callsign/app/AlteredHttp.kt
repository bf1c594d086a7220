package callsign.app

import java.net.URI
import java.util.concurrent.atomic.AtomicBoolean
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Response
import okhttp3.ResponseBody.Companion.toResponseBody

/**
 * Requests go to the server itself, also where the app's sockets go another way. A test may hold them up before or after they
 * are carried out, and alter their answers. Operations are such as `call/start`, with their
 * query.
 */
class AlteredHttp(server: String) {
    private val port = URI(server).port

    @Volatile
    var before: (operation: String) -> Unit = {}

    @Volatile
    var after: (operation: String) -> Unit = {}

    @Volatile
    var alter: (operation: String, answer: JsonObject) -> JsonObject = { _, answer -> answer }

    val client: OkHttpClient = OkHttpClient.Builder().addInterceptor(::answer).build()

    private fun answer(chain: Interceptor.Chain): Response {
        val request = chain.request()
        if (request.header("Upgrade") != null) return chain.proceed(request)
        val path = request.url.encodedPath
        val direct = request.newBuilder().url(request.url.newBuilder().port(port).build()).build()
        if (!path.startsWith(API)) return chain.proceed(direct)
        val operation = listOfNotNull(path.removePrefix(API), request.url.encodedQuery).joinToString("?")
        before(operation)
        val answer = chain.proceed(direct)
        after(operation)
        if (!answer.isSuccessful) return answer
        val body = answer.body
        val text = body.string()
        val altered = if (text.startsWith("{")) "${alter(operation, Json.parseToJsonElement(text).jsonObject)}" else text
        return answer.newBuilder().body(altered.toResponseBody(body.contentType())).build()
    }

    private companion object {
        const val API = "/app/api/"
    }
}

/** Acts at the first operation that is the one. */
fun once(isOne: (operation: String) -> Boolean, act: () -> Unit): (String) -> Unit {
    val isLeft = AtomicBoolean(true)
    return { if (isOne(it) && isLeft.getAndSet(false)) act() }
}

/** Holds up what waits for it. */
class Gate {
    private val reached = CompletableDeferred<Unit>()
    private val opened = CompletableDeferred<Unit>()

    fun pass() {
        reached.complete(Unit)
        runBlocking { opened.await() }
    }

    suspend fun passed() {
        reached.complete(Unit)
        opened.await()
    }

    suspend fun isReached() = reached.await()

    fun open() = opened.complete(Unit)
}
