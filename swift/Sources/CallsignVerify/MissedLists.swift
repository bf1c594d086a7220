// Device lists that an app missed. The server has them, and the log says which they are: exactly the entries of the user's slot
// 0, in their order. Without them a later list is neither taken nor refused.

/// Reads one reply of `GET user/device-lists`: lists in base64. `after` is a seq, nil for all from the last list of seq 0 on.
/// Throws where there is no answer.
public typealias DeviceListReader = @Sendable (_ userId: String, _ after: Int?) async throws -> [String]

/// The newest list, which the log proves at leaf `index`.
struct NewestList: Sendable {
    let list: DeviceList
    let octets: [UInt8]
    let vrfHash: String
    let index: Int
}

/// Ends a check at once.
enum Unfollowed: Error {
    case refused(Refusal)
    case unanswered(Unanswered)

    var outcome: Outcome<VerifiedDevices> {
        switch self {
        case .refused(let refusal): .refused(refusal)
        case .unanswered(let unanswered): .unanswered(unanswered)
        }
    }
}

/// Its functions throw `Unfollowed`.
struct MissedLists: Sendable {
    let lookups: any KeyLookups
    let reader: DeviceListReader

    /// From a known list of a lower seq, whose leaf is `knownIndex`, to the newest one.
    func fromKnown(_ newest: NewestList, _ known: [UInt8], knownIndex: Int) async throws -> ListKind {
        let entries = try await history(newest)
        let hash = hashOf(known)
        guard entries.contains(where: { $0.index == knownIndex && isSame($0.publicKey, hash) }) else {
            throw withheld("the history leaves out the list known before")
        }
        let before = try parseDeviceList(known)
        let lists = try await chain(newest, entries, after: before.seq)
        guard let first = lists.first else { throw withheld("the server leaves out lists") }
        // The list before the first one here has the seq of the known one, and is another.
        if case .refused(.wrongPreviousHash, _) = try judgeDeviceList(userId: newest.list.userId, previous: known, next: first) {
            guard newest.list.createdAtMs > before.createdAtMs else {
                throw refused("the list is older than the one known before")
            }
            try assertSuccession(newest, lists)
            return .reset
        }
        guard entries.count(where: { $0.index > knownIndex }) <= lists.count else {
            throw withheld("the log has more lists than the server shows")
        }
        try assertSuccession(newest, [known] + lists)
        return .successor
    }

    /// From the list that a link names by its hash to the newest one.
    func fromLinked(_ newest: NewestList, listHash: String) async throws -> ListKind {
        let entries = try await history(newest)
        guard entries.contains(where: { isSame($0.publicKey, listHash) }) else {
            throw refused("the link names a device list that the log does not have of this user")
        }
        let lists = try await chain(newest, entries, after: -1)
        try assertSuccession(newest, lists)
        return lists.contains { isSame(hashOf($0), listHash) } ? .successor : .reset
    }

    /// All of slot 0, the newest list's entry last.
    private func history(_ newest: NewestList) async throws -> [LoggedKey] {
        let claim = OwnDevice(
            userId: newest.list.userId,
            deviceId: deviceListSlot,
            vrfHash: newest.vrfHash,
            publicKeys: [hashOf(newest.octets)]
        )
        switch try await lookups.checkOwnKeys(claim) {
        case .holds(let report): return report.entries.filter { $0.index <= newest.index }
        case .refused(let refusal): throw Unfollowed.refused(refusal)
        case .unanswered(let unanswered): throw Unfollowed.unanswered(unanswered)
        }
    }

    /// The lists after a seq up to the newest one, which are the newest entries of slot 0.
    private func chain(_ newest: NewestList, _ entries: [LoggedKey], after: Int) async throws -> [[UInt8]] {
        let count = newest.list.seq - after
        // Bound: a server could make any seq, but proves each entry.
        guard count <= entries.count else { throw withheld("the log has fewer lists than were signed") }
        var lists: [[UInt8]] = []
        while lists.count < count {
            let page = try await page("\(newest.list.userId)", after + lists.count)
            if page.isEmpty { throw withheld("the server leaves out lists") }
            lists += page.prefix(count - lists.count)
        }
        let logged = entries.suffix(lists.count)
        guard zip(lists, logged).allSatisfy({ isSame(hashOf($0), $1.publicKey) }) else {
            throw withheld("the server shows other lists than the log has")
        }
        return lists
    }

    private func page(_ userId: String, _ seq: Int) async throws -> [[UInt8]] {
        do {
            return try await reader(userId, seq >= 0 ? seq : nil).map { try decodeBase64($0) }
        } catch {
            try Task.checkCancellation()
            throw withheld("the device lists could not be read: \((error as? LogError)?.message ?? "\(error)")")
        }
    }
}

/// Refused unless each of these lists is signed by a device of the one before it.
private func assertSuccession(_ newest: NewestList, _ lists: [[UInt8]]) throws {
    for (before, next) in zip(lists, lists.dropFirst()) {
        switch try judgeDeviceList(userId: newest.list.userId, previous: before, next: next) {
        case .refused(_, let detail): throw refused(detail)
        case .taken(.successor, _): continue
        case .taken: throw refused("a list between starts over")
        }
    }
}

private func hashOf(_ octets: [UInt8]) -> String { encodeBase64(deviceListHash(octets)) }

private func withheld(_ detail: String) -> Unfollowed { .unanswered(Unanswered(detail)) }

private func refused(_ detail: String) -> Unfollowed { .refused(Refusal(.deviceList, detail)) }
