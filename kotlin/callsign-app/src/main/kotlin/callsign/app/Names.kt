/** The names of people for screens, as `src/app/names.ts` has them: the user's own for a contact, else the one that the person has. */
package callsign.app

import kotlinx.serialization.json.JsonObject

/** Changed by the coroutines of [Operations] alone, and read by any thread. */
internal class Names(private val onChanged: () -> Unit) {
    private class Known(val contacts: Map<ULong, Person>, val isWhole: Boolean)

    @Volatile
    private var known = Known(emptyMap(), isWhole = false)

    /** Contacts that have changed while the list was read: what it says of them may be older. */
    private val changed = HashSet<ULong>()

    /** The names that count now: those of the contact, else those that came with the person. */
    fun of(person: Person): Person {
        val now = known
        // A list may be read before a call's person has become a contact, whose invitation then knows better.
        return now.contacts[person.userId] ?: person.copy(isContact = person.isContact ?: false.takeIf { now.isWhole })
    }

    fun put(person: Person) {
        changed += person.userId
        replace(known.contacts + (person.userId to person.copy(isContact = true)))
    }

    /** All contacts, read anew. */
    suspend fun load(read: suspend () -> List<Person>) {
        changed.clear()
        val contacts = read().associate { it.userId to it.copy(isContact = true) }
        val newer = known.contacts.filterKeys { it in changed }
        replace((contacts - changed) + newer, isWhole = true)
    }

    fun onEvent(event: JsonObject) {
        when (event.text("type")) {
            "contact_added", "contact_changed" -> put(personOf(event))
            "contact_removed" -> {
                val userId = event.needId("userId")
                changed += userId
                replace(known.contacts - userId)
            }
        }
    }

    private fun replace(contacts: Map<ULong, Person>, isWhole: Boolean = known.isWhole) {
        val isSame = contacts == known.contacts
        known = Known(contacts, isWhole)
        if (!isSame) onChanged()
    }
}
