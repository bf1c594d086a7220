package callsign.app

import callsign.app.CallsignException.LocalCode
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Users of a backend that signs them in by tokens, and suspends them; on the built server, skipped where it is not built. */
@Timeout(120)
class SignInTokenTest {
    private val apps = mutableListOf<Callsign>()

    @AfterEach
    fun close() = runBlocking {
        for (app in apps) app.close()
    }

    private suspend fun app(storage: AppStorage = MemoryAppStorage()) = server.app(storage).also(apps::add)

    private fun token(name: String): String {
        server.backend("PUT", "users/ext:$name", """{"displayName":"$name"}""")
        return server.backend("POST", "users/ext:$name/sign-in-token", "{}").needText("token")
    }

    private suspend fun person(name: String) = app().also { it.signInByToken(token(name)) }

    private suspend fun refusal(act: suspend () -> Unit): CallsignException = try {
        act()
        throw AssertionError("it was not refused")
    } catch (error: CallsignException) {
        error
    }

    @Test
    fun `a token signs in once, and this device again at once`() = runBlocking {
        val ann = app()
        val first = token("ann")
        val userId = ann.signInByToken(first).userId
        assertEquals(userId, ann.signInByToken(first).userId)
        assertEquals(LocalCode.ALREADY_SIGNED_IN, refusal { ann.signInByToken(token("ann")) }.code)
        assertEquals("SIGN_IN_TOKEN_INVALID", refusal { app().signInByToken(first) }.code)
        val deviceId = ann.deviceId
        ann.signOut()
        ann.signInByToken(token("ann"))
        assertEquals(listOf(userId, deviceId, null), listOf(ann.userId, ann.deviceId, ann.restriction))
    }

    @Test
    fun `another device waits for the first one`() = runBlocking {
        val owner = person("bob")
        val second = app()
        assertEquals("SIGN_IN_WAITING", refusal { second.signInByToken(token("bob")) }.code)
        val shown = owner.sessions.waiting().single()
        assertEquals(listOf("server", ""), listOf(shown.method, second.waitingSignIn()?.address))
        owner.sessions.answer(shown.id, approve = true)
        assertEquals(owner.userId, second.finishSignIn().userId)
        assertNull(second.waitingSignIn())
    }

    @Test
    fun `a call ends with its user's suspension, who is signed out and can't come back`() = runBlocking {
        val cat = person("cat")
        val dan = person("dan")
        server.backend("PUT", "contacts", """{"a":"ext:cat","b":"ext:dan"}""")
        val rung = async(start = CoroutineStart.UNDISPATCHED) { dan.calls.first { it.isNotEmpty() }.single() }
        val call = cat.call(listOf(checkNotNull(dan.userId)))
        rung.await().answer()
        call.state.first { it == CallState.ACTIVE }
        val ended = async(start = CoroutineStart.UNDISPATCHED) { rung.await().ended() }
        val out = async(start = CoroutineStart.UNDISPATCHED) {
            dan.events.filterIsInstance<CallsignEvent.SignedOut>().first()
        }
        val endedHere = async(start = CoroutineStart.UNDISPATCHED) { call.ended() }
        server.backend("POST", "users/ext:dan/suspend", """{"reason":"abuse"}""")
        assertEquals(listOf(CallEnding.SUSPENDED, CallEnding.HANGUP), listOf(ended.await(), endedHere.await()))
        assertEquals("SESSION_REVOKED", out.await().error.code)
        assertNull(dan.userId)
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension(mapOf("CALLSIGN_SIGN_IN_WAIT_HOURS" to "72"))
    }
}
