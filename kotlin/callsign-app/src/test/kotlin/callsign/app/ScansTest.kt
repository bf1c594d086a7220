package callsign.app

import callsign.app.CallsignException.LocalCode
import java.io.File
import java.util.concurrent.CopyOnWriteArrayList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** What texts lead to: by the vectors, and on the built server. */
@Timeout(120)
class ScansTest {
    @TestFactory
    fun `each text leads where the vectors say`(): List<DynamicTest> {
        val scans = Json.parseToJsonElement(File(projectRoot, "test/vectors/contact-scans.json").readText()).jsonArray
        return scans.map { it.jsonObject }.map { scan ->
            dynamicTest(scan.word("name")) {
                val expected = when (scan.word("kind")) {
                    "link" -> Scan.Link(scan.word("token"), scan.word("fragment"))
                    "user" -> Scan.User(scan.needId("userId"))
                    else -> null
                }
                assertEquals(expected, scanIn(scan.word("text")))
            }
        }
    }

    @Test
    fun `nobody is asked before the user wants it`() = runBlocking {
        val http = AlteredHttp(server.url)
        val asked = CopyOnWriteArrayList<String>()
        http.before = { if (it.startsWith("share-token") || it.startsWith("friend-request")) asked += it }
        val ann = server.app(http = http.client)
        val (bob, cat) = listOf(server.app(), server.app())
        for ((app, name) in listOf(ann to "Ann", bob to "Bob", cat to "Cat")) server.signIn(app, name)
        fun requests() = asked.toList().also { asked.clear() }

        val link = ann.contacts.open("Add me: ${bob.contacts.shareLink()} thanks!") as Opened.Link
        assertEquals(listOf("share-token/resolve"), requests())
        assertEquals(Triple("Bob", "none", true), Triple(link.displayName, link.relation, link.isNamed))
        assertEquals(RequestStatus.PENDING, link.request("It is Ann"))
        assertEquals(listOf("friend-request/by-token"), requests())
        assertEquals("It is Ann", bob.contacts.requests().items.single().message)

        val user = ann.contacts.open(" ${cat.userId}\n") as Opened.User
        assertEquals(cat.userId, user.userId)
        assertEquals(emptyList<String>(), requests())
        assertEquals(RequestStatus.PENDING, user.request("It is Ann"))
        assertEquals(listOf("friend-request/by-id"), requests())
        assertEquals("It is Ann", cat.contacts.requests().items.single().message)

        val code = try {
            ann.contacts.open("https://example.org/").toString()
        } catch (error: CallsignException) {
            error.code
        }
        assertEquals(LocalCode.INVALID_QR, code)
        assertEquals(emptyList<String>(), requests())
        for (app in listOf(ann, bob, cat)) app.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
