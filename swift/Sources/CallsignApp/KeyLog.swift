// This user's view of the key transparency log: the devices of other people, only those that the log proves, and the user's own
// key and device list.
import CallsignVerify

/// What people are to hear of; it comes before the operation that found it returns.
public enum KeyEvent: Sendable, Equatable {
    /// Another user has other devices than before.
    case devicesChanged(userId: UInt64, event: DeviceEvent)

    /// The server or the log has named keys of this user that do not hold, and nothing is sealed for them. With `evidence`, the
    /// log has shown two trees.
    case refused(userId: UInt64, refusal: Refusal)

    /// The log holds a key in this device's name that it has not made, or lacks its own.
    case ownKeyAlert(userId: UInt64, report: OwnKeysReport)

    /// The log holds a device list that none of the user's devices has made.
    case ownListAlert(userId: UInt64, report: OwnKeysReport)

    /// A call goes on without this user, as it was asked to: nothing can be sealed for this device of theirs.
    case leftOut(userId: UInt64, deviceId: UInt64)

    public var userId: UInt64 {
        switch self {
        case .devicesChanged(let userId, _), .refused(let userId, _), .ownKeyAlert(let userId, _), .ownListAlert(let userId, _),
            .leftOut(let userId, _):
            userId
        }
    }
}

/// Whether new keys of a contact that nothing known vouches for are asked about, as `KEYS_RESET`.
public enum OnReset: Sendable {
    case ask

    /// Encrypts for them without a question, after the event: for bots.
    case goOn
}

/// A device whose key the log proves. `isListed`: its user's device list names it.
struct PeerDevice: Sendable {
    let userId: UInt64
    let deviceId: UInt64
    let publicKeyHash: String
    let isListed: Bool
    let holder: KeyHolder
}

/// A user as `GET user/publicKeys` names them. `signingKeys`, base64, are by the id of their device.
struct PublishedUser: Sendable {
    let userId: UInt64
    let named: NamedUser
    let signingKeys: [String: String]
}

func publishedUserOf(_ members: [String: JSONValue]) throws -> PublishedUser {
    let devices = try members.members("devices")
    let named = try devices.map {
        NamedDevice(
            deviceId: "\(try $0.needId("deviceId"))",
            keyAlgorithm: try $0.needText("keyAlgorithm"),
            publicKey: try $0.needText("publicKey"),
            publicKeyHash: try $0.needText("publicKeyHash")
        )
    }
    let signingKeys = try devices.compactMap { device in
        try device.text("signingKey").map { ("\(try device.needId("deviceId"))", $0) }
    }
    let userId = try members.needId("userId")
    let user = NamedUser(
        userId: "\(userId)",
        devices: named,
        deviceList: members.text("deviceList"),
        deviceListHash: members.text("deviceListHash"),
        absent: try members["absent"]?.object.map(absentListOf)
    )
    return PublishedUser(userId: userId, named: user, signingKeys: Dictionary(signingKeys) { $1 })
}

private func absentListOf(_ members: [String: JSONValue]) throws -> AbsentList {
    AbsentList(
        vrfHash: try members.needText("vrfHash"),
        vrfProof: try members.needText("vrfProof"),
        indexProof: members["indexProof"]?.text
    )
}

/// `list` is nil where the user never had one.
struct OwnUser: Sendable {
    let user: PublishedUser
    let list: DeviceList?
}

/// Its functions throw `KEYS_REFUSED` for what does not hold, after an event; `KEYS_UNAVAILABLE` for keys that this user may not
/// see or that are not there; and `LOG_UNANSWERED` where the log could not be asked.
@CallsignActor final class KeyLog {
    nonisolated let own: OwnKeyHolder
    private let session: Session
    private let device: RegisteredDevice
    private let keys: LogKeys
    private let onReset: OnReset
    private let onEvent: @CallsignActor (KeyEvent) -> Void
    private let stores: LogStores
    private let client: LogClient
    private let contacts: ContactDevices

    init(
        session: Session,
        storage: any AppStorage,
        device: RegisteredDevice,
        keys: LogKeys,
        url: String,
        transport: any LogTransport,
        onReset: OnReset = .ask,
        completeness: CompletenessDemand? = nil,
        maxIndexAgeMs: Int? = nil,
        onEvent: @escaping @CallsignActor (KeyEvent) -> Void
    ) throws {
        self.session = session
        self.device = device
        self.keys = keys
        self.onReset = onReset
        self.onEvent = onEvent
        own = try OwnKeyHolder(userId: device.userId, deviceId: device.deviceId, keys: device.keys)
        stores = LogStores(storage, userId: device.userId, keys: keys)
        client = try LogClient(
            keys: keys,
            url: url,
            store: stores.checkpoints,
            transport: transport,
            completeness: completeness,
            maxIndexAgeMs: maxIndexAgeMs
        )
        contacts = ContactDevices(lookups: client, store: stores.knownUsers) { userId, after in
            let query = after.map { "&after=\($0)" } ?? ""
            return try await session.ask("GET", "user/device-lists?userId=\(userId)\(query)").texts("lists")
        }
    }

    /// Whether the log holds this device's own key, and no other in its name. Call it at each start and once a day. Refused at
    /// `otherKey` where the log's index shows that it was logged twice.
    func checkOwn() async throws -> OwnKeysReport {
        let claim = OwnDevice(
            userId: device.userId,
            deviceId: device.deviceId,
            vrfHash: device.publicKeyHash,
            publicKeys: [device.keys.publicKey]
        )
        let client = client
        let report = try await held(device.userId, checked { try await client.checkOwnKeys(claim) })
        if report.ownKeys != .clean {
            onEvent(.ownKeyAlert(userId: device.userId, report: report))
        } else if report.complete == .complete && report.entries.count > 1 {
            // Twice the same key: other people's apps refuse it all the same.
            let detail = "another key was logged under the hash of device \(device.deviceId)"
            throw try await refuse(device.userId, Refusal(.otherKey, detail))
        }
        return report
    }

    /// All devices of these users, in order to encrypt for them alone. Throws also `KEY_UNSUPPORTED` for an RSA key of a user
    /// without a device list; and `KEYS_RESET` for the first of them whose keys are new, until `acceptKeys`. The own user is
    /// never asked about.
    func devicesOf(_ userIds: [UInt64]) async throws -> [PeerDevice] {
        var all: [PeerDevice] = []
        for user in try await published(userIds) {
            let verdict = try await verified(user).1
            if let question = verdict.question, onReset == .ask, user.userId != device.userId {
                throw keysReset(user.userId, question)
            }
            if verdict.devices.isEmpty { throw unavailable([user.userId], "A user has no device yet.") }
            all += try verdict.devices.map { try peerOf(user.userId, $0.device, verdict.basis) }
        }
        return all
    }

    /// The person in front of the screen goes on with these keys of the user, and no later ones. Throws `KEYS_RESET` where other
    /// ones are asked about.
    func acceptKeys(_ userId: UInt64, listHash: String) async throws {
        let contacts = contacts
        let open = try await checked { try await contacts.accept("\(userId)", listHash: listHash) }
        if let open { throw keysReset(userId, open) }
    }

    func deviceOf(_ userId: UInt64, _ deviceId: UInt64) async throws -> PeerDevice {
        let device = try await devicesOf([userId]).first { $0.deviceId == deviceId }
        guard let device else { throw unavailable([userId], "The device is not one of theirs any more.") }
        return device
    }

    /// The user's own devices, listed or not, and their list, which the log proves.
    func ownUser() async throws -> OwnUser {
        let userId = device.userId
        var left = Self.tries
        while true {
            let (user, verdict) = try await verified(publishedOne(userId))
            let contacts = contacts
            let report = try await held(userId, checked { try await contacts.checkOwnList("\(userId)") })
            let isAlert = report.ownKeys != .clean
            left -= 1
            // Another device of theirs may have signed a list meanwhile.
            if isAlert && left > 0 { continue }
            if isAlert { onEvent(.ownListAlert(userId: userId, report: report)) }
            return OwnUser(user: user, list: verdict.list)
        }
    }

    /// Sixty digits, the same for both users. Throws `KEYS_UNAVAILABLE` where one of them has no device list.
    func codeWith(_ userId: UInt64) async throws -> String {
        let (one, other) = (try await listed(device.userId), try await listed(userId))
        return try await checked { try comparisonCode(one, other) }
    }

    /// Names this user in a share link's fragment. Throws `KEYS_UNAVAILABLE` while they have no device list.
    func shareFragment() async throws -> String {
        // Else a server could have this user vouch for a list that is not theirs.
        let own = try await listed(device.userId)
        let client = client
        return try await checked {
            try await CallsignVerify.shareFragment(
                own, checkpoint: client.highestCheckpoint(), indexCheckpoint: client.highestIndexCheckpoint())
        }
    }

    /// The person that a link's fragment names; nil for a link without one. Compares the log with the one that they were shown.
    /// Throws `MALFORMED` for a fragment that is damaged, or of another log.
    func openShared(_ fragment: String) async throws -> SharedPerson? {
        if fragment.isEmpty || fragment == "#" { return nil }
        let shared: SharedPerson?
        do {
            shared = try readShareFragment(fragment, origin: keys.origin)
        } catch {
            throw damaged(error)
        }
        guard let shared else { throw damaged() }
        for note in [shared.note, shared.indexNote].compactMap({ $0 }) {
            let refusal = try await compare(shared.person.userId, note)
            if let refusal, Self.foreign.contains(refusal.check) { throw damaged() }
        }
        return shared
    }

    /// The person of a link is verified against it when their devices are first used.
    func expect(_ person: ListedPerson) async throws { try await stores.putExpected(person) }

    /// The octets to seal: this user's newest checkpoint goes with them.
    func packed(_ content: CallKeyContent) async throws -> [UInt8] {
        let client = client
        return try await checked { try await packCallKey(content, checkpoint: client.highestCheckpoint()) }
    }

    /// Takes apart what a device of this user has sealed, and compares its checkpoint with the newest one here.
    func unpacked(_ opened: [UInt8], userId: UInt64) async throws -> CallKeyContent {
        let read: OpenedCallKey
        do {
            read = try readCallKey(opened, origin: keys.origin)
        } catch {
            throw CallsignError(CallsignError.LocalCode.callKeyInvalid, "What was sealed is no call's key.", cause: error)
        }
        if let note = read.note { _ = try await compare(userId, note) }
        return read.content
    }

    /// Reports that what the server said of the user does not hold: the error to throw.
    func refuse(_ userId: UInt64, _ refusal: Refusal) async throws -> CallsignError {
        if let evidence = refusal.evidence { try await stores.addEvidence(evidence) }
        onEvent(.refused(userId: userId, refusal: refusal))
        let members = bodyOf(["userId": "\(userId)", "check": refusal.check.rawValue])
        return CallsignError(CallsignError.LocalCode.keysRefused, "The keys do not hold: \(refusal.detail).", members: members)
    }

    private func peerOf(_ userId: UInt64, _ named: NamedDevice, _ basis: VerifiedDevices.Basis) throws -> PeerDevice {
        guard let deviceId = uint64(named.deviceId) else { throw answerInvalid() }
        let holder = try KeyHolder(userId: userId, deviceId: deviceId, publicKey: named.publicKey)
        // An app that knows of device lists opens the form for RSA keys too, which takes the sender's signing key in them.
        if case .rsa = holder.key, basis != .list {
            throw keyUnsupported(userId, deviceId, "is one of RSA, and stands in no device list")
        }
        return PeerDevice(
            userId: userId,
            deviceId: deviceId,
            publicKeyHash: named.publicKeyHash,
            isListed: basis == .list,
            holder: holder
        )
    }

    /// Reports it where the log has shown another user another tree. The key is good all the same. Returns what was refused.
    private func compare(_ userId: UInt64, _ note: String) async throws -> Refusal? {
        let client = client
        guard case .refused(let refusal) = try await checked({ try await client.compareWith(note) }) else { return nil }
        // A note that proves nothing is that user's doing.
        if refusal.evidence != nil { _ = try await refuse(userId, refusal) }
        return refusal
    }

    private func publishedOne(_ userId: UInt64) async throws -> PublishedUser {
        guard let user = try await published([userId]).first else { throw answerInvalid() }
        return user
    }

    /// In the order of the ids. Users that were not asked for are left out.
    private func published(_ userIds: [UInt64]) async throws -> [PublishedUser] {
        if userIds.isEmpty { return [] }
        let ids = userIds.map { "\($0)" }.joined(separator: ",")
        let answer = try await session.ask("GET", "user/publicKeys?userIds=\(ids)")
        let named = try answer.members("users").map(publishedUserOf)
        let users = Dictionary(named.map { ($0.userId, $0) }) { $1 }
        let hidden = Set(try answer.textsOrNil("unavailable") ?? [])
        let missing = userIds.filter { users[$0] == nil }
        if !missing.isEmpty {
            let sentence = "The keys of a user are not to be seen."
            throw unavailable(missing, sentence, hidden: missing.filter { hidden.contains("\($0)") })
        }
        return userIds.compactMap { users[$0] }
    }

    /// Tells what has changed, once the devices are found good.
    private func verified(_ published: PublishedUser) async throws -> (PublishedUser, VerifiedDevices) {
        let userId = published.userId
        var user = published
        var judged = try await judge(user)
        var left = Self.tries
        while case .refused = judged, left > 1 {
            left -= 1
            // They may have signed a list since the answer: the next answer has it.
            user = try await publishedOne(userId)
            judged = try await judge(user)
        }
        let verdict = try await held(userId, judged)
        let isOwn = userId == device.userId
        let isOwnDoing = isOwn ? try await hasSigned(verdict) : false
        for event in verdict.events {
            // `OwnDeviceList` has the devices that wait for the list, and this one's place.
            let isKnown = isOwn && (event.kind == .unlisted || event.deviceId == "\(device.deviceId)")
            if !isOwnDoing && !isKnown { onEvent(.devicesChanged(userId: userId, event: event)) }
        }
        if !verdict.events.isEmpty {
            let contacts = contacts
            try await checked { try await contacts.shown("\(userId)", verdict.events) }
        }
        return (user, verdict)
    }

    /// Whether this device has signed the user's own list. Throws where the list has another signing key for it.
    private func hasSigned(_ verdict: VerifiedDevices) async throws -> Bool {
        guard let list = verdict.list, let own = list.devices.first(where: { $0.deviceId == device.deviceId })
        else { return false }
        if encodeBase64(own.signingKey) != device.keys.signingKey {
            let detail = "the list has another signing key for this device"
            throw try await refuse(device.userId, Refusal(.deviceList, detail))
        }
        return list.signerDeviceId == own.deviceId
    }

    private func judge(_ user: PublishedUser) async throws -> Outcome<VerifiedDevices> {
        let contacts = contacts
        guard let expected = try await stores.expected(user.userId) else {
            return try await checked { try await contacts.verify(user.named) }
        }
        let verdict = try await checked { try await contacts.verifyShared(user.named, expected) }
        if case .holds = verdict { try await stores.forgetExpected(user.userId) }
        return verdict
    }

    private func listed(_ userId: UInt64) async throws -> ListedPerson {
        guard let list = try await verified(publishedOne(userId)).0.named.deviceList, let octets = base64Octets(list) else {
            throw unavailable([userId], "A user has no device list yet.")
        }
        return ListedPerson(userId: userId, listHash: encodeBase64(sha256(octets)))
    }

    private func held<Value>(_ userId: UInt64, _ outcome: Outcome<Value>) async throws -> Value {
        switch outcome {
        case .holds(let value): return value
        case .refused(let refusal): throw try await refuse(userId, refusal)
        case .unanswered(let answer): throw unanswered(answer)
        }
    }

    /// How often an answer is judged that a new list may have overtaken.
    private static let tries = 3

    /// A note is none of this log.
    private static let foreign: Set<Check> = [.checkpoint, .origin, .signature]
}

/// The log's client throws a `LogError` where a stored value is not what it has put there.
private func checked<Answer: Sendable>(_ ask: @Sendable () async throws -> Answer) async throws -> Answer {
    do {
        return try await ask()
    } catch let cause as LogError {
        throw storageCorrupt("checkpoint", cause: cause)
    }
}

private func unanswered(_ answer: Unanswered) -> CallsignError {
    var members = bodyOf(["code": answer.code, "check": answer.check?.rawValue])
    if let status = answer.status { members["status"] = JSONValue(status) }
    let sentence = "The key log could not be asked: \(answer.detail)."
    return CallsignError(CallsignError.LocalCode.logUnanswered, sentence, members: members)
}

private func keysReset(_ userId: UInt64, _ question: KeyQuestion) -> CallsignError {
    let members = ["userId": "\(userId)", "listHash": question.listHash, "kind": question.kind.rawValue]
    let sentence = "The keys of a contact are new, and nothing known vouches for them. Accept them to go on."
    return CallsignError(CallsignError.LocalCode.keysReset, sentence, members: bodyOf(members))
}

private func damaged(_ cause: (any Error)? = nil) -> CallsignError {
    CallsignError("MALFORMED", "The link is damaged, or of another server.", cause: cause)
}

/// `hidden` are users whose keys the server does not show to this one.
private func unavailable(_ userIds: [UInt64], _ sentence: String, hidden: [UInt64] = []) -> CallsignError {
    var members = ["userIds": idsOf(userIds)]
    if !hidden.isEmpty { members["hiddenIds"] = idsOf(hidden) }
    return CallsignError(CallsignError.LocalCode.keysUnavailable, sentence, members: members)
}
