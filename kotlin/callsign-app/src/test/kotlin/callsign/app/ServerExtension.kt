package callsign.app

import java.io.File
import java.nio.file.Files
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.serialization.json.JsonObject
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.extension.AfterAllCallback
import org.junit.jupiter.api.extension.AfterEachCallback
import org.junit.jupiter.api.extension.BeforeAllCallback
import org.junit.jupiter.api.extension.BeforeEachCallback
import org.junit.jupiter.api.extension.ExtensionContext

/**
 * The built server: one for the class where this is a member of its companion, else one for each test. Where it is not built,
 * tests are skipped.
 */
class ServerExtension(private val settings: Map<String, String> = emptyMap()) :
    BeforeAllCallback,
    BeforeEachCallback,
    AfterEachCallback,
    AfterAllCallback {
    private var folder = File("")
    private var running: DevelopmentServer? = null
    private var isShared = false
    private var people = 0

    private val server: DevelopmentServer get() = checkNotNull(running)
    val url: String get() = server.url
    val stompTcp: String get() = server.stompTcp

    /** The app's backend, which may make users, sign them in and suspend them. */
    val backend: (method: String, path: String, body: String) -> JsonObject by lazy {
        val key = server.newServerKey("users", "sign-in", "contacts")
        return@lazy { method, path, body -> server.backend(key, method, path, body) }
    }

    suspend fun codeFor(email: String): String = server.codeFor(email)

    suspend fun app(
        storage: AppStorage = MemoryAppStorage(),
        http: OkHttpClient = OkHttpClient(),
        through: String = url,
    ) = Callsign(through, developmentPins(url), storage, http = http)

    /** A new person with this name. */
    suspend fun signIn(app: Callsign, name: String): ULong = signIn(app, name, newAddress(name))

    suspend fun signIn(app: Callsign, name: String, address: String): ULong =
        app.signIn(address, name) { sentCode(url, address) }.userId

    /** The user of the storage's session proves by a code who they are. */
    suspend fun prove(storage: AppStorage, address: String) {
        val session = Session.open(Server(url), storage)
        val ask: suspend (Map<String, String>) -> JsonObject? = {
            session.request("POST", "user/step-up", bodyOf(it)) as? JsonObject
        }
        val before = codeFor(address)
        val challenge = ask(mapOf("send" to "code"))?.get("challenge") as JsonObject
        var otp = before
        while (otp == before) otp = codeFor(address)
        ask(mapOf("challengeId" to challenge.needText("challengeId"), "otp" to otp))
    }

    /** Another device of the user with this address, which their first one has approved. */
    suspend fun approvedDevice(first: Callsign, address: String, http: OkHttpClient = OkHttpClient()): Callsign {
        val device = app(http = http)
        signIn(device, "Bob", address)
        val listed = first.devices.listState.filterIsInstance<OwnListState.Listed>().first { it.waiting.isNotEmpty() }
        first.devices.approve(listed.waiting.single())
        device.devices.listState.first { it is OwnListState.Listed }
        return device
    }

    fun newAddress(name: String): String = "$name-${++people}@example.org"

    /** Ends the server, and starts one with the same data whose clock is so far ahead. */
    fun restart(clockAheadMs: Long) {
        server.close()
        running = DevelopmentServer(folder, settings, clockAheadMs)
    }

    override fun beforeAll(context: ExtensionContext) {
        isShared = true
        start()
    }

    override fun beforeEach(context: ExtensionContext) {
        if (!isShared) start()
    }

    override fun afterEach(context: ExtensionContext) {
        if (!isShared) end()
    }

    override fun afterAll(context: ExtensionContext) = end()

    private fun start() {
        assumeTrue(DevelopmentServer.isBuilt, "the server is not built")
        folder = Files.createTempDirectory("callsign").toFile()
        running = DevelopmentServer(folder, settings)
    }

    private fun end() {
        running?.close()
        running = null
        folder.deleteRecursively()
    }
}

/** Makes two people contacts. */
suspend fun befriend(ann: Callsign, bob: Callsign) {
    ann.contacts.requestByLink(bob.contacts.shareLink())
    bob.contacts.accept(checkNotNull(ann.userId))
}

suspend fun Call.ended(): CallEnding = events.filterIsInstance<CallEvent.Ended>().first().ending
