package callsign.app

import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** Reports to the moderators, on the built server; skipped where it is not built. */
@Timeout(120)
class ReportsTest {
    @Test
    fun `a user is reported for one of the server's reasons, and nobody reports themselves`() = runBlocking {
        val (ann, bob) = listOf("Ann", "Bob").map { name -> server.app().also { server.signIn(it, name) } }
        val reasons = ann.contacts.reportReasons()
        assertEquals(ReportReason("harassment", "Bullying or harassment"), reasons.first())
        val (annId, bobId) = listOf(ann, bob).map { checkNotNull(it.userId) }
        assertTrue(ann.contacts.report(bobId, "threat", "At night", callId = 7uL).toULong() > 0uL)
        val refused = runCatching { ann.contacts.report(annId, "other") }.exceptionOrNull() as CallsignException
        assertEquals("SELF_REQUEST", refused.code)
        for (app in listOf(ann, bob)) app.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
