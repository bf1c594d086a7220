package callsign.app

import callsign.app.CallsignException.LocalCode
import java.util.Collections
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.flow.filterNotNull
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import okhttp3.OkHttpClient
import okio.Buffer
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/**
 * Proofs that operations are refused without, passkeys, and what an app says beside a code, on the built server; skipped where it
 * is not built.
 */
@Timeout(120)
class StepUpTest {
    private val apps = mutableListOf<Callsign>()

    /** Requests with their bodies, such as `POST user/step-up` and its proof. */
    private val heard = Collections.synchronizedList(mutableListOf<Pair<String, JsonObject?>>())
    private val altered = AlteredHttp(server.url)
    private val http: OkHttpClient = altered.client.newBuilder().addInterceptor { chain ->
        val request = chain.request()
        val body = Buffer().also { request.body?.writeTo(it) }.readUtf8()
        heard += "${request.method} ${request.url.encodedPath.removePrefix("/app/api/")}" to objectIn(body.ifEmpty { "-" })
        chain.proceed(request)
    }.build()

    @AfterEach
    fun close() = runBlocking {
        for (app in apps) app.close()
    }

    private suspend fun app(passkeys: PasskeyAuthenticator? = null, storage: AppStorage = MemoryAppStorage()): Callsign =
        Callsign(server.url, developmentPins(server.url), storage, http = http, passkeys = passkeys).also(apps::add)

    /** Their device is on their list. */
    private suspend fun person(passkeys: PasskeyAuthenticator? = null, storage: AppStorage = MemoryAppStorage()): Callsign =
        app(passkeys, storage).also { enter(it) }

    private suspend fun enter(app: Callsign) = app.signIn(addresses.removeFirst(), "Ann") { CODE }

    private fun bodiesOf(operation: String) = heard.toList().filter { it.first == operation }.map { it.second }

    private fun CoroutineScope.question(app: Callsign): Deferred<ProofQuestion> =
        async(start = CoroutineStart.UNDISPATCHED) { app.proofNeeded.filterNotNull().first() }

    private fun CoroutineScope.deletion(app: Callsign): Deferred<String?> = async { codeOf { app.account.delete() } }

    private suspend fun codeOf(act: suspend () -> Unit): String? = try {
        act()
        null
    } catch (error: CallsignException) {
        error.code
    }

    @Test
    fun `where nobody collects questions the operation is refused`() = runBlocking {
        val me = person()
        assertEquals("STEP_UP_REQUIRED", codeOf { me.account.delete() })
        assertNull(me.proofNeeded.value)
        assertEquals(emptyList<JsonObject>(), bodiesOf("POST user/step-up"))
    }

    @Test
    fun `operations that are refused together wait for one proof of this device, and are repeated`() = runBlocking {
        val me = person()
        var questions = 0
        val asking = launch(start = CoroutineStart.UNDISPATCHED) { me.proofNeeded.filterNotNull().collect { questions++ } }
        val asked = question(me)
        val primary = me.account.loginMethods().single()
        val setting = List(3) { async { me.account.setPrimaryLoginMethod(primary.id) } }
        val proof = asked.await()
        assertEquals(setOf(ProofWay.CODE), proof.ways)
        assertTrue(checkNotNull(proof.sentTo).contains("•"))
        proof.confirm(" ${CODE.take(3)} ${CODE.drop(3)} ")
        assertEquals(List(3) { primary.id }, setting.awaitAll().map { it.single().id })
        me.account.setPrimaryLoginMethod(primary.id)
        assertEquals(1, questions)
        assertNull(me.proofNeeded.value)
        val sent = checkNotNull(bodiesOf("POST user/step-up").single())
        assertEquals(CODE, sent.text("otp"))
        assertEquals(88, sent.text("deviceSignature")?.length)
        asking.cancel()
    }

    @Test
    fun `an operation whose refusal comes after the proof of another is repeated without a question`() = runBlocking {
        val me = person()
        val primary = me.account.loginMethods().single()
        val gate = Gate()
        altered.after = once({ it == "user/export" }, gate::pass)
        val asked = question(me)
        val exporting = async { me.account.export() }
        gate.isReached()
        val setting = async { me.account.setPrimaryLoginMethod(primary.id) }
        asked.await().confirm(CODE)
        setting.await()
        gate.open()
        // Nobody collects questions any more.
        assertEquals(me.userId, userOf(exporting.await().member("user")).userId)
    }

    @Test
    fun `a wrong code leaves the question open, and one that has ended is replaced`() = runBlocking {
        val me = person()
        val asked = question(me)
        val deleting = deletion(me)
        val proof = asked.await()
        repeat(5) { assertEquals("OTP_INVALID", codeOf { proof.confirm("000000") }) }
        assertEquals("CHALLENGE_GONE", codeOf { proof.confirm(CODE) })
        assertEquals(proof.sentTo, proof.sendCode().sentTo)
        proof.confirm(CODE)
        assertNull(deleting.await())
    }

    @Test
    fun `refused, the operation is, and the next one asks again`() = runBlocking {
        val me = person()
        val asked = question(me)
        val deleting = deletion(me)
        val proof = asked.await()
        proof.refuse()
        assertEquals("STEP_UP_REQUIRED", deleting.await())
        assertEquals("CHALLENGE_GONE", codeOf { proof.confirm(CODE) })
        val again = question(me)
        val second = deletion(me)
        again.await().confirm(CODE)
        assertNull(second.await())
    }

    @Test
    fun `a question that no operation waits for any more is not open`() = runBlocking {
        val me = person()
        val asked = question(me)
        val deleting = deletion(me)
        val proof = asked.await()
        deleting.cancel()
        me.proofNeeded.first { it == null }
        assertEquals("CHALLENGE_GONE", codeOf { proof.sendCode() })
        assertEquals("STEP_UP_REQUIRED", codeOf { me.account.delete() })
    }

    @Test
    fun `what waits when the user signs out ends, and proves nothing for the next user of the app`() = runBlocking {
        val me = person()
        val asked = question(me)
        val deleting = deletion(me)
        val proof = asked.await()
        me.signOut()
        assertEquals(LocalCode.SIGNED_OUT, deleting.await())
        enter(me)
        assertEquals("CHALLENGE_GONE", codeOf { proof.confirm(CODE) })
        assertEquals("CHALLENGE_GONE", codeOf { proof.sendCode() })
        assertEquals(emptyList<JsonObject>(), bodiesOf("POST user/step-up"))
    }

    @Test
    fun `a provider's token goes as it is, with the signature`() = runBlocking {
        val me = person()
        val asked = question(me)
        val deleting = deletion(me)
        val proof = asked.await()
        assertTrue(codeOf { proof.byProvider("google", "aa.bb.cc", nonce = "n") } != null)
        val sent = checkNotNull(bodiesOf("POST user/step-up").single())
        assertEquals(listOf("google", "aa.bb.cc", "n"), listOf("provider", "idToken", "nonce").map { sent.text(it) })
        assertTrue("deviceSignature" in sent)
        proof.refuse()
        assertEquals("STEP_UP_REQUIRED", deleting.await())
    }

    @Test
    fun `a passkey is added, signs in, and proves who the user is`() = runBlocking {
        val storage = MemoryAppStorage()
        val me = person(SoftwareAuthenticator(server.url), storage)
        val userId = me.userId
        val asked = question(me)
        val adding = async { me.addPasskey("Phone") }
        asked.await().confirm(CODE)
        val method = adding.await()
        assertEquals(listOf("passkey", "Phone", true, false), listOf(method.kind, method.label, method.backedUp, method.primary))
        assertEquals(setOf("email", "passkey"), me.account.loginMethods().map { it.kind }.toSet())
        me.signOut()
        assertEquals(userId, me.signInByPasskey().userId)
        me.close()
        val plain = app(storage = storage)
        plain.resume()
        val plainly = question(plain)
        val refused = deletion(plain)
        assertEquals(setOf(ProofWay.CODE), plainly.await().ways)
        plainly.await().refuse()
        assertEquals("STEP_UP_REQUIRED", refused.await())
        plain.close()

        me.resume()
        // Its sign-in is a proof, but for a listed device, which signs it.
        val again = question(me)
        val deleting = deletion(me)
        val proof = again.await()
        assertEquals(setOf(ProofWay.CODE, ProofWay.PASSKEY), proof.ways)
        assertNull(proof.sentTo)
        assertEquals("CHALLENGE_GONE", codeOf { proof.confirm(CODE) })
        proof.byPasskey()
        assertNull(deleting.await())
    }

    @Test
    fun `without an authenticator no passkey is made, and one that gives nonsense says so`() = runBlocking {
        val me = person()
        assertEquals(LocalCode.PASSKEY_UNAVAILABLE, codeOf { me.addPasskey() })
        me.signOut()
        assertEquals(LocalCode.PASSKEY_UNAVAILABLE, codeOf { me.signInByPasskey() })
        val broken = object : PasskeyAuthenticator {
            override suspend fun create(options: String) = "no JSON"

            override suspend fun get(options: String) = "[]"
        }
        assertEquals(LocalCode.PASSKEY_UNAVAILABLE, codeOf { app(broken).signInByPasskey() })
        assertEquals(emptyList<JsonObject>(), bodiesOf("POST login/passkey"))
    }

    @Test
    fun `an account is read, exported and changed, with an address whose code is asked for`() = runBlocking {
        val me = person()
        val asked = question(me)
        val second = addresses.removeFirst()
        val adding = async { me.account.addLoginMethod(second) { CODE } }
        asked.await().confirm(CODE)
        adding.await()
        val added = me.account.loginMethods().single { it.value == second }
        assertEquals(added.id, me.account.setPrimaryLoginMethod(added.id).single { it.primary }.id)
        assertEquals(second, me.account.read().email)
        assertEquals(me.userId, userOf(me.account.export().member("user")).userId)
        me.account.removeLoginMethod(me.account.loginMethods().single { !it.primary }.id)
        assertEquals(listOf(second), me.account.loginMethods().map { it.value })
        assertTrue(me.account.delete() > System.currentTimeMillis())
    }

    @Test
    fun `what the operator's check asks for goes with the address and with each further code`() = runBlocking {
        val me = app()
        val address = addresses.removeFirst()
        me.signIn(address, "Ann", attestation = "first") { question ->
            assertTrue(codeOf { question.resend("second") } in setOf(null, "OTP_COOLDOWN"))
            CODE
        }
        assertEquals(JsonPrimitive("first"), bodiesOf("POST login").single()?.get("attestation"))
        assertEquals(JsonPrimitive("second"), bodiesOf("POST resend-otp").single()?.get("attestation"))
    }

    private companion object {
        const val CODE = "424242"
        val addresses = ArrayDeque(List(20) { "p$it@example.org" })

        @JvmField
        @RegisterExtension
        val server = ServerExtension(
            mapOf("CALLSIGN_TEST_IDENTIFIERS" to bodyOf(addresses.associateWith { CODE }).toString()),
        )
    }
}
