package callsign.app

import callsign.verify.decodeBase64
import callsign.verify.encodeBase64
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** A server that lies about the devices that a call's key is for; skipped where it is not built. */
@Timeout(120)
class KeySetsTest {
    private suspend fun codeOf(act: suspend () -> Unit): String? = try {
        act()
        null
    } catch (error: CallsignException) {
        error.code
    }

    /** With one octet of a key's hash changed, in each set of an answer. */
    private fun altered(answer: JsonObject): JsonObject = JsonObject(
        answer.mapValues { (name, value) ->
            when (name) {
                "keyMembers" -> JsonPrimitive(alteredSet((value as JsonPrimitive).content))
                "keySets", "items" -> JsonArray((value as JsonArray).map { altered(it as JsonObject) })
                else -> value
            }
        },
    )

    private fun alteredSet(set: String): String =
        encodeBase64(decodeBase64(set).also { it[it.size - 1] = (it[it.size - 1].toInt() xor 1).toByte() })

    @Test
    fun `a set that was altered on the way is refused, and the true one is taken`() = runBlocking {
        val ann = server.app()
        server.signIn(ann, "Ann")
        val http = AlteredHttp(server.url)
        val bob = server.app(http = http.client)
        val bobId = server.signIn(bob, "Bob")
        befriend(ann, bob)
        http.alter = { operation, answer -> if (operation.startsWith("call/")) altered(answer) else answer }
        val call = ann.call(bobId)
        val incoming = bob.ringing.first()
        assertEquals("KEY_MEMBERS_REFUSED", codeOf { incoming.answer() })
        assertEquals(false, incoming.isVerified)
        http.alter = { _, answer -> answer }
        incoming.answer()
        assertEquals(true, incoming.isVerified)
        call.state.first { it == CallState.ACTIVE }
        assertEquals(call.fingerprint, incoming.fingerprint)
        call.end()
        ann.close()
        bob.close()
    }

    @Test
    fun `a new key asks for no devices that were proved in the call`() = runBlocking {
        val http = AlteredHttp(server.url)
        val ann = server.app(http = http.client)
        server.signIn(ann, "Ann")
        val bob = server.app()
        val bobId = server.signIn(bob, "Bob")
        befriend(ann, bob)
        val call = ann.call(bobId)
        bob.ringing.first().answer()
        call.state.first { it == CallState.ACTIVE }
        http.alter = { operation, answer ->
            if (operation.startsWith("user/publicKeys")) JsonObject(emptyMap()) else answer
        }
        call.renewKey()
        assertEquals(2L, call.key.value?.epoch)
        assertEquals(call.fingerprint, bob.calls.value.single().key.first { it?.epoch == 2L }?.fingerprint)
        call.end()
        ann.close()
        bob.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
