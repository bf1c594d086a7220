package callsign.app

import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.extension.RegisterExtension

/** By which names people are shown: by the vectors, and in calls on the built server, which is skipped where it is not built. */
@Timeout(120)
class NamesTest {
    @TestFactory
    fun `people are shown as the vectors say`(): List<DynamicTest> =
        readVectors("contact-names").objects("cases").map { dynamicTest(it.word("name")) { runBlocking { play(it) } } }

    private suspend fun play(case: JsonObject) {
        var changes = 0
        val names = Names { changes++ }
        for (step in case.objects("steps")) {
            if ("contacts" in step) names.load {
                if ("meanwhile" in step) step.objects("meanwhile").forEach(names::onEvent)
                step.objects("contacts").map(::personOf)
            }
            if ("event" in step) names.onEvent(step.member("event"))
            if ("shown" in step) assertEquals(step.member("as"), wordsOf(names.of(personIn(step.member("shown")))))
            step.number("changes")?.let { assertEquals(it, changes.toLong()) }
        }
    }

    private fun personIn(said: JsonObject) = personOf(said).copy(isContact = if ("isContact" in said) said.flag("isContact") else null)

    private fun wordsOf(person: Person): JsonObject {
        val texts = mapOf("name" to person.name, "displayName" to person.displayName, "alias" to person.alias)
        return JsonObject(bodyOf(texts) + listOfNotNull(person.isContact?.let { "isContact" to JsonPrimitive(it) }))
    }

    @Test
    fun `a contact is shown by the name that the user gives them, in calls too, on all sides`() = runBlocking {
        val (bob, ann, cat) = listOf("Bob", "Ann", "Cat").map { name -> server.app().also { server.signIn(it, name) } }
        befriend(ann, bob)
        befriend(cat, bob)
        val bobId = checkNotNull(bob.userId)
        val contact = ann.contacts.rename(bobId, " My  brother ").person
        assertEquals(Person(bobId, "Bob", "My brother", isContact = true), contact)
        assertEquals(listOf(contact), ann.contacts.list().items.map { it.person })
        assertEquals("My brother", ann.contacts.nameOf(Person(bobId, "old")))

        val call = bob.call(listOf(checkNotNull(ann.userId), checkNotNull(cat.userId)))
        val (ringing, atCat) = listOf(ann, cat).map { it.ringing.first() }
        assertEquals(contact, ringing.caller)
        assertEquals(Person(bobId, "Bob", isContact = true), atCat.caller)
        ringing.answer()
        suspend fun isShown(name: String) =
            ringing.participants.first { people -> people.find { it.userId == bobId }?.name == name }
        isShown("My brother")
        assertEquals(false, "${call.participants.value}${atCat.participants.value}".contains("brother"))
        ann.contacts.rename(bobId, null)
        isShown("Bob")
        val told = async(start = CoroutineStart.UNDISPATCHED) {
            ann.events.filterIsInstance<CallsignEvent.Message>().first { it.type == "contact_changed" }
        }
        bob.account.update(bodyOf(mapOf("displayName" to "Robert")))
        assertEquals("Robert", told.await().members.text("displayName"))
        isShown("Robert")
        assertEquals("Robert", ringing.caller.name)
        call.end()
        for (app in listOf(bob, ann, cat)) app.close()
    }

    @Test
    fun `a call that rings already says by which name, and who is a stranger`() = runBlocking {
        val (bob, ann) = listOf("Bob", "Ann").map { name -> server.app().also { server.signIn(it, name) } }
        befriend(ann, bob)
        val (annId, bobId) = listOf(ann, bob).map { checkNotNull(it.userId) }
        ann.contacts.rename(bobId, "Bobby")
        // The call is all that the next start knows of him: names are read after it.
        ann.connection.first { it == ConnectionState.CONNECTED }
        ann.close()
        val call = bob.call(annId)
        ann.resume()
        assertEquals(Person(bobId, "Bob", "Bobby", isContact = true), ann.ringing.first().caller)
        call.end()

        ann.account.update(JsonObject(mapOf("settings" to JsonObject(mapOf("callsFromContactsOnly" to JsonPrimitive(false))))))
        ann.contacts.remove(bobId)
        val ofStranger = bob.call(annId)
        val caller = ann.ringing.first { it.callId == ofStranger.callId }.caller
        assertEquals(Person(bobId, "Bob", isContact = false), caller)
        ofStranger.end()
        for (app in listOf(bob, ann)) app.close()
    }

    private companion object {
        @JvmField
        @RegisterExtension
        val server = ServerExtension()
    }
}
