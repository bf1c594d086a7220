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

    /** Those whose addition was told since the list was read last. */
    private val added = HashMap<ULong, Person>()

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
        added.clear()
        val listed = read().associate { it.userId to it.copy(isContact = true) }
        val contacts = added + listed
        val newer = known.contacts.filterKeys { it in changed }
        replace((contacts - changed) + newer, isWhole = true)
    }

    fun onEvent(event: JsonObject) {
        when (event.text("type")) {
            "contact_added" -> add(personOf(event).copy(isContact = true))
            "contact_changed" -> put(personOf(event))
            "contact_removed" -> remove(event.needId("userId"))
        }
    }

    /** An addition may be told late, and does not say by which name this user calls them: whatever else does counts. */
    private fun add(contact: Person) {
        val (userId) = contact
        added[userId] = contact
        if (userId in known.contacts) return
        changed -= userId
        if (known.isWhole) replace(known.contacts + (userId to contact))
    }

    private fun remove(userId: ULong) {
        changed += userId
        added -= userId
        replace(known.contacts - userId)
    }

    private fun replace(contacts: Map<ULong, Person>, isWhole: Boolean = known.isWhole) {
        val isSame = contacts == known.contacts
        known = Known(contacts, isWhole)
        if (!isSame) onChanged()
    }
}
