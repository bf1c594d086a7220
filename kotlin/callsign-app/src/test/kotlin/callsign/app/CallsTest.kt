package callsign.app

import callsign.example.main as firstCall
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.PrintStream
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

/** Calls between this package and `callsign/app` on the built server; skipped where it is not built. */
@Timeout(120)
class CallsTest {
    private val url get() = checkNotNull(server).url

    private suspend fun app(storage: AppStorage = MemoryAppStorage()) = Callsign(url, developmentPins(url), storage)

    private suspend fun Callsign.signInAs(name: String): ULong {
        val address = "$name-${++people}@example.org"
        return signIn(address, name) { sentCode(url, address) }.userId
    }

    private class Pair(
        val ann: Callsign,
        val annId: ULong,
        val bob: TypeScriptParticipant,
        val bobId: ULong,
        val storage: AppStorage,
    )

    /** Ann in Kotlin and Bob in TypeScript, who are contacts. */
    private fun withFriends(act: suspend Pair.() -> Unit) = runBlocking {
        val storage = MemoryAppStorage()
        val ann = app(storage)
        val annId = ann.signInAs("Ann")
        TypeScriptParticipant(url).use { bob ->
            val bobId = bob.text("signIn", "Bob-${++people}@example.org", "Bob").toULong()
            ann.contacts.request(bobId)
            bob.tell("accept", annId)
            Pair(ann, annId, bob, bobId, storage).act()
        }
        ann.close()
    }

    private suspend fun Call.ended(): CallEnding = events.filterIsInstance<CallEvent.Ended>().first().ending

    @Test
    fun `both call each other, with verified keys and one fingerprint`() = withFriends {
        val call = ann.call(bobId)
        val callId = bob.text("ringing")
        assertEquals(call.callId, callId)
        val answered = bob.view("answer", callId)
        call.state.first { it == CallState.ACTIVE }
        assertEquals(call.fingerprint, answered.text("fingerprint"))
        assertEquals("true", answered.text("isVerified"))
        call.end()
        assertEquals(CallEnding.HANGUP, call.ending)
        assertNull(call.fingerprint)

        val back = bob.view("call", annId)
        val ringing = ann.ringing.first()
        ringing.answer()
        assertEquals(true, ringing.isVerified)
        assertEquals(back.text("fingerprint"), ringing.fingerprint)
        bob.tell("end", ringing.callId)
        assertEquals(CallEnding.HANGUP, ringing.ended())
        assertEquals(ann.contacts.comparisonCode(bobId), bob.text("code", annId))
        assertEquals("[]", bob.tell("keyEvents").toString())
    }

    @Test
    fun `the first program calls a person and is called back`() = runBlocking {
        TypeScriptParticipant(url).use { bob ->
            val bobId = bob.text("signIn", "Bob-${++people}@example.org", "Bob")
            val printed = ByteArrayOutputStream()
            val out = System.out
            System.setOut(PrintStream(printed, true))
            try {
                val program = async(Dispatchers.IO) { firstCall(arrayOf(url, bobId)) }
                val kimId = bob.text("acceptFirst")
                val called = bob.view("answer", bob.text("ringing"))
                bob.tell("end", called.needText("callId"))
                val back = bob.view("call", kimId)
                program.await()
                val first = "called: ${called.text("fingerprint")}"
                val second = "called back: ${back.text("fingerprint")}, verified: true"
                assertEquals("$first\n$second\n", printed.toString())
            } finally {
                System.setOut(out)
            }
        }
    }

    @Test
    fun `the README shows the first program`() {
        val kotlin = generateSequence(File("").absoluteFile, File::getParentFile).first { File(it, "callsign-app").isDirectory }
        val program = File(kotlin, "callsign-app/src/test/kotlin/callsign/example/FirstCall.kt").readText()
        assertTrue(program.lines().size <= 41)
        assertTrue("```kotlin\n$program```" in File(kotlin, "README.md").readText())
    }

    private companion object {
        @TempDir
        @JvmStatic
        lateinit var folder: File
        var server: DevelopmentServer? = null
        var people = 0

        @BeforeAll
        @JvmStatic
        fun start() {
            assumeTrue(DevelopmentServer.isBuilt, "the server is not built")
            server = DevelopmentServer(folder)
        }

        @AfterAll
        @JvmStatic
        fun stop() {
            server?.close()
        }
    }
}
