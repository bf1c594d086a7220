import CallsignVerify

/// The names of people for screens, as `src/app/names.ts` has them: the user's own for a contact, else the one that the person
/// has. Changed by `CallsignActor` alone, and read by any thread.
final class Names: Sendable {
    private struct Known {
        var contacts: [UInt64: Person] = [:]
        var isWhole = false
    }

    private let onChanged: @CallsignActor () -> Void
    private let known = Locked(Known())

    /// Contacts that have changed while the list was read: what it says of them may be older.
    @CallsignActor private var changed: Set<UInt64> = []

    /// Those whose addition was told since the list was read last.
    @CallsignActor private var added: [UInt64: Person] = [:]

    init(onChanged: @escaping @CallsignActor () -> Void) { self.onChanged = onChanged }

    /// The names that count now: those of the contact, else those that came with the person.
    func of(_ person: Person) -> Person {
        let now = known.with { $0 }
        // A list may be read before a call's person has become a contact, whose invitation then knows better.
        if let contact = now.contacts[person.userId] { return contact }
        var shown = person
        if person.isContact == nil && now.isWhole { shown.isContact = false }
        return shown
    }

    @CallsignActor func put(_ person: Person) {
        changed.insert(person.userId)
        replace(contact(person))
    }

    /// All contacts, read anew.
    @CallsignActor func load(_ read: @CallsignActor () async throws -> [Person]) async rethrows {
        changed = []
        added = [:]
        let listed = try await read().map { ($0.userId, asContact($0)) }
        var contacts = added.merging(listed) { $1 }
        let newer = known.with { $0.contacts }
        for userId in changed { contacts[userId] = newer[userId] }
        replace(contacts, isWhole: true)
    }

    @CallsignActor func onEvent(_ event: [String: JSONValue]) throws {
        switch event.text("type") {
        case "contact_added": add(asContact(try personOf(event)))
        case "contact_changed": put(try personOf(event))
        case "contact_removed": remove(try event.needId("userId"))
        default: break
        }
    }

    /// An addition may be told late, and does not say by which name this user calls them: whatever else does counts.
    @CallsignActor private func add(_ contact: Person) {
        added[contact.userId] = contact
        let now = known.with { $0 }
        if now.contacts[contact.userId] != nil { return }
        changed.remove(contact.userId)
        if now.isWhole { replace(self.contact(contact)) }
    }

    @CallsignActor private func remove(_ userId: UInt64) {
        changed.insert(userId)
        added[userId] = nil
        var contacts = known.with { $0.contacts }
        contacts[userId] = nil
        replace(contacts)
    }

    /// All contacts, with this one.
    private func contact(_ person: Person) -> [UInt64: Person] {
        var contacts = known.with { $0.contacts }
        contacts[person.userId] = asContact(person)
        return contacts
    }

    @CallsignActor private func replace(_ contacts: [UInt64: Person], isWhole: Bool? = nil) {
        let isOther = known.with { known in
            defer { known = Known(contacts: contacts, isWhole: isWhole ?? known.isWhole) }
            return contacts != known.contacts
        }
        if isOther { onChanged() }
    }
}

private func asContact(_ person: Person) -> Person {
    var contact = person
    contact.isContact = true
    return contact
}
