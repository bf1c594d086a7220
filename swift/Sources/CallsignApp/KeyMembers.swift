import CallsignVerify

// The set of devices that a call's key is sealed for (docs/check/crypto.md). Its hash is sealed with the key, so each of them learns
// who else has it.

/// A device in a set. `name` is `<userId>_<deviceId>`. `keyHash` is SHA-256 of its logged public key: a name may have had another
/// key before.
struct KeyMember: Sendable, Equatable {
    let userId: UInt64
    let name: String
    let keyHash: [UInt8]
}

/// How a set differs from the one before, as `key_update` tells it: entries in base64, and names.
struct SetChange: Sendable, Equatable {
    let added: String
    let removed: [String]
}

/// Where a set may be found, also by a `change` to one of these; whether it is the one, its hash says.
struct SetHints: Sendable, Equatable {
    let sets: [String]
    var change: SetChange?
}

/// A set as it travels: the base64 of its octets. Throws `malformed` for a device that comes twice, and for none.
func keyMembersOf(_ holders: [KeyHolder]) throws -> String { try setOf(holders.map(entryOf)) }

/// The devices in a set. Throws `malformed` for what is no set.
func readKeyMembers(_ keyMembers: String) throws -> [KeyMember] { try entriesIn(keyMembers).map(memberOf) }

/// 32 octets. Throws `malformed` for what is no set.
func hashOfSet(_ keyMembers: String) throws -> [UInt8] {
    _ = try entriesIn(keyMembers)
    return sha256(setPurpose, try decodeBase64(keyMembers))
}

/// The set after a change. Throws `malformed` where it can't be applied.
func changedSet(_ keyMembers: String, _ change: SetChange) throws -> String {
    let added = try decodeBase64(change.added)
    guard added.count % entryOctets == 0 else { throw LogError.malformed("what was added is no list of devices") }
    let stays = try entriesIn(keyMembers).filter { entry in
        let name = memberOf(entry).name
        return !change.removed.contains { isSame($0, name) }
    }
    return try setOf(stays + chunksOf(added))
}

private func setOf(_ entries: [[UInt8]]) throws -> String {
    let ordered = entries.sorted { $0.prefix(nameOctets).lexicographicallyPrecedes($1.prefix(nameOctets)) }
    let set = encodeBase64(bigEndianOctets(UInt64(entries.count), count: countOctets) + ordered.joined())
    _ = try entriesIn(set)
    return set
}

private func entryOf(_ holder: KeyHolder) -> [UInt8] {
    bigEndianOctets(holder.userId, count: 8) + bigEndianOctets(holder.deviceId, count: 8) + holder.keyHash
}

private func memberOf(_ entry: [UInt8]) -> KeyMember {
    let userId = bigEndian(entry, count: 8)
    return KeyMember(userId: userId, name: "\(userId)_\(bigEndian(entry, at: 8, count: 8))", keyHash: Array(entry[nameOctets...]))
}

/// Throws unless the octets are a set in its one order.
private func entriesIn(_ keyMembers: String) throws -> [[UInt8]] {
    let set = try decodeBase64(keyMembers)
    let count = set.count < countOctets ? 0 : Int(bigEndian(set, count: countOctets))
    guard (1...membersMax).contains(count), set.count == countOctets + count * entryOctets else {
        throw LogError.malformed("\(set.count) octets are no set of devices")
    }
    let entries = chunksOf(Array(set[countOctets...]))
    let isOrdered = zip(entries, entries.dropFirst()).allSatisfy {
        $0.prefix(nameOctets).lexicographicallyPrecedes($1.prefix(nameOctets))
    }
    guard isOrdered else { throw LogError.malformed("the devices of a set are not in their order") }
    return entries
}

private func chunksOf(_ octets: [UInt8]) -> [[UInt8]] {
    stride(from: 0, to: octets.count, by: entryOctets).map { Array(octets[$0..<$0 + entryOctets]) }
}

private let setPurpose = Array("callsign call members v1\n".utf8)
private let countOctets = 2

/// The user's id and the device's: what a set is ordered by.
private let nameOctets = 16
private let entryOctets = 48

/// Those of a key map, and the sender.
private let membersMax = 321
