// The devices of each person that this app encrypts for, as it has come to know them. A device list that the log proves says
// which they are; a person whose apps make no list is trusted on first use. Every change since is an event.

/// A user as `GET user/publicKeys` and a friend request's answer name it. Ids are decimal texts, as in JSON.
public struct NamedUser: Sendable, Equatable {
    public let userId: String
    public let devices: [NamedDevice]

    /// Base64.
    public let deviceList: String?

    /// The VRF hash under which the log holds the list's SHA-256.
    public let deviceListHash: String?

    /// Instead of a list: the proof that the log has none.
    public let absent: AbsentList?

    public init(
        userId: String,
        devices: [NamedDevice],
        deviceList: String? = nil,
        deviceListHash: String? = nil,
        absent: AbsentList? = nil
    ) {
        self.userId = userId
        self.devices = devices
        self.deviceList = deviceList
        self.deviceListHash = deviceListHash
        self.absent = absent
    }
}

/// A device as the server names it; key and hash are base64.
public struct NamedDevice: Sendable, Equatable {
    public let deviceId: String
    public let keyAlgorithm: String
    public let publicKey: String
    public let publicKeyHash: String

    public init(deviceId: String, keyAlgorithm: String, publicKey: String, publicKeyHash: String) {
        self.deviceId = deviceId
        self.keyAlgorithm = keyAlgorithm
        self.publicKey = publicKey
        self.publicKeyHash = publicKeyHash
    }
}

/// A device to encrypt for.
public struct VerifiedDevice: Sendable, Equatable {
    public let device: NamedDevice

    /// An uncompressed P-256 point, base64; nil where no list names the device.
    public var signingKey: String?

    package init(device: NamedDevice, signingKey: String? = nil) {
        self.device = device
        self.signingKey = signingKey
    }
}

/// A person's devices. Encrypt for `devices` only, and ask before you do where there is a question.
public struct VerifiedDevices: Sendable, Equatable {
    /// Whether a list says which devices there are, or the server alone.
    public enum Basis: String, Sendable {
        case list
        case firstUse = "first-use"
    }

    public let basis: Basis
    public let devices: [VerifiedDevice]
    public let list: DeviceList?

    /// Each comes again until `ContactDevices.shown` is called.
    public let events: [DeviceEvent]

    /// It comes again until `ContactDevices.accept` is called.
    public var question: KeyQuestion?

    /// What the log's index proves of all that was looked up, the least of it.
    public var complete: Completeness.Kind = .unindexed

    /// Whether cosigners that rebuild the index vouch for all of it.
    public var isProved = false

    package init(
        basis: Basis,
        devices: [VerifiedDevice],
        list: DeviceList?,
        events: [DeviceEvent],
        question: KeyQuestion? = nil,
        proved: [Completeness]
    ) {
        self.basis = basis
        self.devices = devices
        self.list = list
        self.events = events
        self.question = question
        complete = leastOf(proved)
        isProved = areProved(proved)
    }
}

/// Verifies and remembers the devices of contacts.
public final class ContactDevices: Sendable {
    private let lookups: any KeyLookups
    private let store: any KnownUserStore
    private let missed: MissedLists
    private let turn = Turn()

    public init(lookups: any KeyLookups, store: any KnownUserStore, reader: @escaping DeviceListReader) {
        self.lookups = lookups
        self.store = store
        missed = MissedLists(lookups: lookups, reader: reader)
    }

    /// The devices of this person to encrypt for, once the log proves them. Refused at `deviceList` where the list or the devices
    /// named beside it do not hold, or a list that there was is left out; at `otherKey` where the log's index shows another key
    /// under the hash of a device; else at the check of a lookup that failed. Unanswered also where lists that this app missed
    /// are withheld. Throws what the store throws, and `malformed` for an id that is no uint64 in decimal.
    public func verify(_ user: NamedUser) async throws -> Outcome<VerifiedDevices> {
        try await turn.one {
            if user.deviceList == nil && user.deviceListHash == nil { return try await trustOnFirstUse(user) }
            return try await verifyListed(user)
        }
    }

    /// As `verify`, of a person whom a link or QR code names: refused at `deviceList` unless they are that person, with the list
    /// of the link or with lists that have followed it in the log. Nothing is remembered where that fails.
    public func verifyShared(_ user: NamedUser, _ shared: ListedPerson) async throws -> Outcome<VerifiedDevices> {
        try await turn.one {
            guard isSame(user.userId, "\(shared.userId)") else {
                return .refused(refusal("the link is of user \(shared.userId)"))
            }
            guard user.deviceList != nil, user.deviceListHash != nil else {
                return .refused(refusal("the device list is left out"))
            }
            return try await verifyListed(user, linkedHash: shared.listHash)
        }
    }

    /// The person in front of the screen goes on with the keys of this hash. Returns the question that is still open.
    public func accept(_ userId: String, listHash: String) async throws -> KeyQuestion? {
        try await turn.one {
            guard var known = try await store.get(userId), let question = known.question else { return nil }
            guard isSame(question.listHash, listHash) else { return question }
            known.question = nil
            try await store.put(known)
            return nil
        }
    }

    /// The app has shown the events that `verify` gave, so they come no more.
    public func shown(_ userId: String, _ events: [DeviceEvent]) async throws {
        try await turn.one {
            guard var known = try await store.get(userId) else { return }
            known.events.removeAll { events.contains($0) }
            try await store.put(known)
        }
    }

    /// For one's own user id: whether the log holds, in the place of one's lists, exactly those that this device has followed.
    /// Clean where there is no list.
    public func checkOwnList(_ userId: String) async throws -> Outcome<OwnKeysReport> {
        guard let list = try await store.get(userId)?.list else { return .holds(OwnKeysReport(ownKeys: .clean, entries: [])) }
        let octets = try decodeBase64(list.list)
        let hash = encodeBase64(deviceListHash(octets))
        let own = OwnDevice(userId: try uint64(of: userId), deviceId: deviceListSlot, vrfHash: list.vrfHash, publicKeys: [hash])
        let outcome = try await lookups.checkOwnKeys(own)
        guard case .holds(var report) = outcome else { return outcome }
        let followed = report.entries.filter { $0.index >= list.sinceIndex && $0.index <= list.index }
        // Each list names the one before, and the device that signed it had judged that: one entry too many is a list beside
        // them.
        let isWhole = followed.count == (try parseDeviceList(octets).seq) &- list.sinceSeq &+ 1
        let from = isWhole ? list.index : list.sinceIndex
        report.ownKeys = compareOwnKeys(report.entries.filter { $0.index >= from }, [hash])
        return .holds(report)
    }

    private func trustOnFirstUse(_ user: NamedUser) async throws -> Outcome<VerifiedDevices> {
        let known = try await store.get(user.userId)
        if known?.list != nil { return .refused(refusal("the device list of user \(user.userId) is left out")) }
        let userId = try uint64(of: user.userId)
        let claims = try user.devices.map { try claimOf(userId, $0) }
        let keys: [VerifiedKey]
        switch verified(claims, try await lookups.lookUpAll(claims)) {
        case .holds(let found): keys = found
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): return .unanswered(unanswered)
        }
        let absence: Absence
        switch try await lookups.verifyAbsence(userId: userId, deviceId: deviceListSlot, absent: user.absent) {
        case .holds(let found): absence = found
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): return .unanswered(unanswered)
        }
        let proved = [absence.completeness] + keys.map(\.completeness)
        let now = try user.devices.map {
            KnownDevice(deviceId: $0.deviceId, keyHash: encodeBase64(sha256(try decodeBase64($0.publicKey))))
        }
        // A person without devices has not been met yet.
        if known == nil && now.isEmpty {
            return .holds(VerifiedDevices(basis: .firstUse, devices: [], list: nil, events: [], proved: proved))
        }
        let news = known.map { changesOf($0.devices, now, added: .added, replaced: .replaced) } ?? []
        let hasReplaced = news.contains { $0.kind == .replaced }
        let asked: KeyQuestion.Kind? = hasReplaced ? .replaced : news.contains { $0.kind == .added } ? .added : nil
        let question = questionAfter(known, asked, unlistedDevicesHash(user.userId, now))
        let next = KnownUser(userId: user.userId, devices: now, events: known?.events ?? [], question: question)
        let events = try await keep(next, news)
        let devices = user.devices.map { VerifiedDevice(device: $0) }
        return .holds(
            VerifiedDevices(basis: .firstUse, devices: devices, list: nil, events: events, question: question, proved: proved))
    }

    private func verifyListed(_ user: NamedUser, linkedHash: String? = nil) async throws -> Outcome<VerifiedDevices> {
        let known = try await store.get(user.userId)
        let read: ReadList
        do {
            read = try readList(user, known?.list)
        } catch let failed as CheckFailed {
            return .refused(failed.refusal)
        }
        let devices = user.devices.filter { read.listed($0.deviceId) != nil }
        let userId = try uint64(of: user.userId)
        let slot = DeviceToLookUp(userId: userId, deviceId: deviceListSlot, vrfHash: read.vrfHash, publicKey: read.hash)
        let claims = [slot] + (try devices.map { try claimOf(userId, $0) })
        let keys: [VerifiedKey]
        switch verified(claims, try await lookups.lookUpAll(claims)) {
        case .holds(let found): keys = found
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): return .unanswered(unanswered)
        }
        // The list's own claim is the first one.
        let index = keys[0].index
        if let refusal = notNewest(known?.list, index, read.kind) { return .refused(refusal) }
        let kind: ListKind
        do {
            kind = try await follow(read, index, known?.list, linkedHash ?? read.hash)
        } catch let ended as Unfollowed {
            return ended.outcome
        }
        let (events, question) = try await remember(user, read, index, kind, known)
        let found = devices.map { device in
            VerifiedDevice(device: device, signingKey: read.listed(device.deviceId).map { encodeBase64($0.signingKey) })
        }
        let proved = keys.map(\.completeness)
        return .holds(
            VerifiedDevices(basis: .list, devices: found, list: read.list, events: events, question: question, proved: proved))
    }

    /// Judges the newest list once this app has the lists that it missed, or those since the link. Throws `Unfollowed`.
    private func follow(_ read: ReadList, _ index: Int, _ known: KnownList?, _ linkedHash: String) async throws -> ListKind {
        let newest = NewestList(list: read.list, octets: read.octets, vrfHash: read.vrfHash, index: index)
        var followed = read.kind ?? .first
        if read.kind == nil, let known {
            followed = try await missed.fromKnown(newest, decodeBase64(known.list), knownIndex: known.index)
        }
        if isSame(linkedHash, read.hash) { return followed }
        return try await missed.fromLinked(newest, listHash: linkedHash) == .reset ? .reset : followed
    }

    private func remember(
        _ user: NamedUser,
        _ read: ReadList,
        _ index: Int,
        _ kind: ListKind,
        _ known: KnownUser?
    ) async throws -> ([DeviceEvent], KeyQuestion?) {
        let before = kind == .reset ? nil : known?.list
        let now = read.list.devices.map {
            KnownDevice(deviceId: "\($0.deviceId)", keyHash: encodeBase64($0.publicKeySha256))
        }
        let unlisted = user.devices.filter { read.listed($0.deviceId) == nil }
            .map { DeviceEvent(.unlisted, deviceId: $0.deviceId) }
        let kept = KnownList(
            list: encodeBase64(read.octets),
            vrfHash: read.vrfHash,
            index: index,
            sinceIndex: before?.sinceIndex ?? index,
            sinceSeq: before?.sinceSeq ?? read.list.seq
        )
        let asked: KeyQuestion.Kind? = kind == .reset ? .reset : kind == .first && known != nil ? .firstList : nil
        let question = questionAfter(known, asked, read.hash)
        let next = KnownUser(userId: user.userId, devices: now, list: kept, events: known?.events ?? [], question: question)
        return (try await keep(next, newsOf(known, now, kind) + unlisted), question)
    }

    /// Returns all events to be shown.
    private func keep(_ known: KnownUser, _ news: [DeviceEvent]) async throws -> [DeviceEvent] {
        let all = known.events + news.filter { !known.events.contains($0) }
        var kept = known
        // A server may name thousands of devices: they do not crowd out that the person has started over.
        kept.events = all.enumerated().filter { $0.element.kind == .reset || $0.offset >= all.count - eventsMax }.map(\.element)
        try await store.put(kept)
        return kept.events
    }
}

/// A list, judged by the one known before.
private struct ReadList {
    let octets: [UInt8]
    let vrfHash: String
    let list: DeviceList

    /// Nil for a list of a higher seq than the next one: the app has missed lists.
    let kind: ListKind?

    /// Base64.
    let hash: String

    /// The device of the list with this id.
    func listed(_ deviceId: String) -> ListedDevice? { list.devices.first { isSame("\($0.deviceId)", deviceId) } }
}

/// The list, judged by the one known before; and the devices beside it by the list. Throws `CheckFailed`.
private func readList(_ user: NamedUser, _ known: KnownList?) throws -> ReadList {
    guard let deviceList = user.deviceList, let vrfHash = user.deviceListHash else {
        throw CheckFailed(.deviceList, "the server names a list or its hash without the other")
    }
    let octets = try during(.deviceList) { () throws(LogError) in try decodeBase64(deviceList) }
    let before = try known.map { try decodeBase64($0.list) }
    let verdict = try judgeDeviceList(userId: uint64(of: user.userId), previous: before, next: octets)
    let (list, kind) = try followed(before, verdict, octets)
    let read = ReadList(octets: octets, vrfHash: vrfHash, list: list, kind: kind, hash: encodeBase64(deviceListHash(octets)))
    for device in user.devices {
        guard let listed = read.listed(device.deviceId) else { continue }
        let key = try during(.deviceList) { () throws(LogError) in try decodeBase64(device.publicKey) }
        guard isSame(listed.algorithm.rawValue, device.keyAlgorithm), listed.publicKeySha256 == sha256(key) else {
            throw CheckFailed(.deviceList, "the key of device \(device.deviceId) is not the one in the list")
        }
    }
    return read
}

/// An app that was away has missed lists: one of a higher seq is held against them, and has no kind yet. Any other list that does
/// not follow the known one comes from another first one, so the person has started over. It has to be younger than the known
/// one, or else a log could bring back a list from which a device was removed. Throws `CheckFailed`.
private func followed(_ before: [UInt8]?, _ verdict: DeviceListVerdict, _ octets: [UInt8]) throws -> (DeviceList, ListKind?) {
    let (reason, detail): (DeviceListRefusal, String)
    switch verdict {
    case .taken(let kind, let list): return (list, kind)
    case .refused(let why, let text): (reason, detail) = (why, text)
    }
    // What `judgeDeviceList` says of a list that does not follow the known one at once.
    guard let before, reason == .seqJump || reason == .wrongPreviousHash else { throw CheckFailed(.deviceList, detail) }
    let known = try parseDeviceList(before)
    let list = try parseDeviceList(octets)
    if reason == .seqJump && list.seq > known.seq { return (list, nil) }
    guard list.createdAtMs > known.createdAtMs else {
        throw CheckFailed(.deviceList, "list \(list.seq) comes after list \(known.seq)")
    }
    return (list, .reset)
}

/// The refusal where the log shows the list before the one that is known.
private func notNewest(_ known: KnownList?, _ index: Int, _ kind: ListKind?) -> Refusal? {
    guard let known else { return nil }
    let isInOrder = kind == .unchanged ? index >= known.index : index > known.index
    return isInOrder ? nil : refusal("the list is at leaf \(index), the one known before at leaf \(known.index)")
}

private func newsOf(_ known: KnownUser?, _ now: [KnownDevice], _ kind: ListKind) -> [DeviceEvent] {
    if kind == .reset { return [DeviceEvent(.reset)] }
    guard let known else { return [] }
    switch kind {
    case .unchanged, .reset: return []
    case .first: return changesOf(known.devices, now, added: .added, replaced: .replaced)
    case .successor: return changesOf(known.devices, now, added: .addedByList, replaced: .addedByList)
    }
}

private func claimOf(_ userId: UInt64, _ device: NamedDevice) throws -> DeviceToLookUp {
    let deviceId = try uint64(of: device.deviceId)
    return DeviceToLookUp(userId: userId, deviceId: deviceId, vrfHash: device.publicKeyHash, publicKey: device.publicKey)
}

/// The keys, if all lookups hold. A refusal counts before an answer that is missing.
private func verified(_ claims: [DeviceToLookUp], _ outcomes: [Outcome<VerifiedKey>]) -> Outcome<[VerifiedKey]> {
    var keys: [VerifiedKey] = []
    var missing: Unanswered?
    for outcome in outcomes {
        switch outcome {
        case .holds(let key): keys.append(key)
        case .refused(let refusal): return .refused(refusal)
        case .unanswered(let unanswered): missing = missing ?? unanswered
        }
    }
    if let missing { return .unanswered(missing) }
    if keys.count != claims.count { return .unanswered(Unanswered("\(keys.count) of \(claims.count) devices were looked up")) }
    return otherKey(claims, keys).map(Outcome.refused) ?? .holds(keys)
}

/// A device has one key for its whole life, so a second key is an intruder's. Lists follow one another.
private func otherKey(_ claims: [DeviceToLookUp], _ keys: [VerifiedKey]) -> Refusal? {
    for (claim, key) in zip(claims, keys) where claim.deviceId != deviceListSlot {
        guard case .complete(let indexes, _, _) = key.completeness, indexes.count > 1 else { continue }
        return Refusal(.otherKey, "another key was logged under the hash of device \(claim.deviceId)")
    }
    return nil
}

/// Throws `malformed` for a text that is no uint64 in decimal.
private func uint64(of id: String) throws(LogError) -> UInt64 {
    guard let number = uint64(id) else { throw .malformed("\"\(quotable(id, scalars: 40))\" is not a uint64 in decimal") }
    return number
}

private func refusal(_ detail: String) -> Refusal { Refusal(.deviceList, detail) }

/// Only a server that lies makes more.
private let eventsMax = 64
