// How two people make sure, outside of the app, that they mean each other: a link or QR code that says whose it is, and sixty
// digits to read out. Neither needs to trust the server.

/// A person with a device list. `listHash` is SHA-256 of the newest list, base64.
public struct ListedPerson: Sendable, Equatable {
    public let userId: UInt64
    public let listHash: String

    public init(userId: UInt64, listHash: String) {
        self.userId = userId
        self.listHash = listHash
    }
}

/// The content of a link's fragment. `note` is for `LogClient.compareWith`, and so is `indexNote`, of the log's index.
public struct SharedPerson: Sendable, Equatable {
    public let person: ListedPerson
    public var note: String?
    public var indexNote: String?

    public init(person: ListedPerson, note: String? = nil, indexNote: String? = nil) {
        self.person = person
        self.note = note
        self.indexNote = indexNote
    }
}

/// Twelve groups of five digits, the same for both people. Another device list gives another code, so a false list shows; it
/// changes when either of them adds or removes a device. Throws `malformed` for a hash that is not base64 of 32 octets.
public func comparisonCode(_ one: ListedPerson, _ other: ListedPerson) throws(LogError) -> String {
    let (first, second) = one.userId < other.userId ? (one, other) : (other, one)
    return (try groupsOf(first) + groupsOf(second)).joined(separator: " ")
}

/// The fragment for a link or QR code, with the sign `#`. Browsers do not send it to the server. The checkpoints are the
/// highest ones of this app, of the log and of its index.
public func shareFragment(
    _ person: ListedPerson, checkpoint: SignedCheckpoint? = nil, indexCheckpoint: SignedCheckpoint? = nil
) throws(LogError) -> String {
    let notes = try noteMember("n", checkpoint) + noteMember("i", indexCheckpoint)
    return "#u=\(person.userId)&l=\(toURL(person.listHash))\(notes)"
}

/// Reads a fragment, with or without its `#`; nil where it says nothing of a person. `origin` is the name of the app's log.
/// Throws `malformed` for one that does and is broken: do not add that contact.
public func readShareFragment(_ fragment: String, origin: String) throws(LogError) -> SharedPerson? {
    let octets = Array(fragment.utf8)[...]
    var members: [String: String] = [:]
    for part in (after("#", in: octets) ?? octets).split(separator: UInt8(ascii: "&")) {
        members[textOf(part.prefix(2))] = textOf(part.dropFirst(2))
    }
    let user = members["u="]
    let list = members["l="]
    if user == nil && list == nil { return nil }
    guard let userId = user.flatMap(uint64), let list else { throw damaged }
    let listHash = fromURL(list)
    guard try decodeBase64(listHash).count == hashOctets else { throw damaged }
    let note = try noteIn(members["n="], origin)
    let indexNote = try noteIn(members["i="], indexOriginOf(origin))
    return SharedPerson(person: ListedPerson(userId: userId, listHash: listHash), note: note, indexNote: indexNote)
}

private func noteMember(_ name: String, _ checkpoint: SignedCheckpoint?) throws(LogError) -> String {
    guard let checkpoint, let packed = try packCheckpoint(checkpoint) else { return "" }
    return "&\(name)=\(toURL(encodeBase64(packed)))"
}

private func noteIn(_ packed: String?, _ origin: String) throws(LogError) -> String? {
    guard let packed else { return nil }
    guard let note = readPackedCheckpoint(try decodeBase64(fromURL(packed)), origin: origin) else { throw damaged }
    return note
}

/// 30 digits, of 240 bits of SHA-256: to find another list with the same ones takes 2^99 tries.
private func groupsOf(_ person: ListedPerson) throws(LogError) -> [String] {
    let hash = try decodeBase64(person.listHash)
    guard hash.count == hashOctets else { throw damaged }
    let digest = sha256(Array("callsign comparison v1\n".utf8), bigEndianOctets(person.userId, count: 8), hash)
    return (0..<6).map { padded(Int(bigEndian(digest, at: 5 * $0, count: 5) % 100_000), digits: 5) }
}

private func toURL(_ base64: String) -> String {
    let text = replaced(base64, ["+": "-", "/": "_"])
    return textOf(text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.reversed())
}

private func fromURL(_ text: String) -> String {
    replaced(text, ["-": "+", "_": "/"]) + String(repeating: "=", count: -text.utf8.count & 3)
}

private func replaced(_ text: String, _ others: [Unicode.Scalar: Unicode.Scalar]) -> String {
    var replaced = String.UnicodeScalarView()
    replaced.append(contentsOf: text.unicodeScalars.map { others[$0] ?? $0 })
    return String(replaced)
}

private let damaged = LogError.malformed("the link is damaged")
