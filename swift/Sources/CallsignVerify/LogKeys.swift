/// The index of a log. `log` has the keys of its output log, and the quorum whose cosignatures an output checkpoint needs.
/// `isRebuilt`: those are of cosigners that rebuild the index. `isDemanded`: answers have to prove that they are complete, unless
/// the app says otherwise.
struct IndexKeys: Sendable {
    let log: LogKeys
    let isRebuilt: Bool
    let isDemanded: Bool
}

/// The keys that an app knows its log by. They come with the app and never from the log's own server. Made by `ofVerifierKey` or
/// `ofPolicy`.
public final class LogKeys: Sendable {
    /// Names what an app remembers of the log: its origin, with the key's id where no policy lets the log change its key. A
    /// development server that starts anew has another log of the same origin.
    public let name: String

    /// The origin of the log: the first line of its checkpoints.
    public let origin: String

    /// A checkpoint is signed by one of them; all have one name, the origin.
    let verifiers: [VerifierKey]
    let vrfPublicKey: [UInt8]

    /// Whose cosignatures a checkpoint needs, if any.
    let quorum: QuorumMember?

    /// Nil where the app knows no index of the log.
    let index: IndexKeys?

    /// Each result of an answer carries the same notes, so the last ones that held are remembered.
    let lastOpened = Remembered<SignedCheckpoint>()

    let lastWitnessed = Locked<WitnessedNote?>(nil)

    let provenHashes = ProvenHashes()

    private init(
        name: String, origin: String, verifiers: [VerifierKey], vrfPublicKey: [UInt8], quorum: QuorumMember?, index: IndexKeys?
    ) {
        self.name = name
        self.origin = origin
        self.verifiers = verifiers
        self.vrfPublicKey = vrfPublicKey
        self.quorum = quorum
        self.index = index
    }

    /// A log without witnesses. `vkey` is its verifier key, `name+keyid+base64`; `vrfPublicKey` is base64 of the 32-octet VRF
    /// key. Throws `keyInvalid` for a key that is not of its form, also for a VRF key under which anyone can make proofs.
    /// `indexVkey` is the verifier key of the log's index, where the app knows it.
    public static func ofVerifierKey(
        _ vkey: String, vrfPublicKey: String, indexVkey: String? = nil
    ) throws(LogError) -> LogKeys {
        let vrfKey = try parseVrfPublicKey(vrfPublicKey)
        let verifier = try parseVerifierKey(vkey)
        var index: IndexKeys?
        if let indexVkey {
            let log = try indexLog(of: verifier, [try parseVerifierKey(indexVkey)], vrfKey, nil)
            index = IndexKeys(log: log, isRebuilt: false, isDemanded: false)
        }
        let name = "\(verifier.name)+\(hexId(verifier.keyId))"
        return LogKeys(
            name: name, origin: verifier.name, verifiers: [verifier], vrfPublicKey: vrfKey, quorum: nil, index: index)
    }

    /// A log with witnesses. `policy` is the text of a policy (c2sp.org/tlog-policy). It names one log; several times, with one
    /// origin, while the log changes its key. A line of the origin `<origin>/index` names the log's index, which answers then
    /// have to prove that they are complete by. A member `rebuilders` names the cosigners that rebuild the index before they
    /// cosign. Throws as `ofVerifierKey`, and `malformed` for a policy that is not one, or has no log or several.
    public static func ofPolicy(_ policy: String, vrfPublicKey: String) throws(LogError) -> LogKeys {
        let vrfKey = try parseVrfPublicKey(vrfPublicKey)
        let read = try parsePolicy(policy)
        let indexOrigins = Set(read.logs.map { Array(indexOriginOf($0.name).utf8) })
        let ofIndex = read.logs.filter { indexOrigins.contains(Array($0.name.utf8)) }
        let verifiers = read.logs.filter { !indexOrigins.contains(Array($0.name.utf8)) }
        let origins = Set(verifiers.map { Array($0.name.utf8) }).count
        guard origins == 1, let first = verifiers.first else { throw .malformed("policy has \(origins) logs, not one") }
        var index: IndexKeys?
        if !ofIndex.isEmpty {
            let log = try indexLog(of: first, ofIndex, vrfKey, read.rebuilders ?? read.quorum)
            index = IndexKeys(log: log, isRebuilt: read.rebuilders != nil, isDemanded: true)
        }
        return LogKeys(
            name: first.name, origin: first.name, verifiers: verifiers, vrfPublicKey: vrfKey, quorum: read.quorum, index: index)
    }

    private static func indexLog(
        of log: VerifierKey, _ verifiers: [VerifierKey], _ vrfKey: [UInt8], _ quorum: QuorumMember?
    ) throws(LogError) -> LogKeys {
        let expected = indexOriginOf(log.name)
        if let other = verifiers.first(where: { !isSame($0.name, expected) }) {
            throw .keyInvalid("the key of the index is of \(other.name), not of \(expected)")
        }
        return LogKeys(
            name: expected, origin: expected, verifiers: verifiers, vrfPublicKey: vrfKey, quorum: quorum, index: nil)
    }
}

/// The last few of something, the newest first.
final class Remembered<Value: Sendable>: Sendable {
    private let values = Locked<[Value]>([])

    func find(_ isWanted: (Value) -> Bool) -> Value? { values.with { $0 }.first(where: isWanted) }

    func keep(_ value: Value) {
        values.with { $0 = [value] + $0.prefix(rememberedMax - 1) }
    }
}

/// Hashes that were proven, by input and proof: a proof is the larger part of a lookup's work, and an app looks the same
/// devices up for each call.
final class ProvenHashes: Sendable {
    private let hashes = Locked<[String: String]>([:])

    /// The name has to be ASCII.
    func find(_ name: String) -> String? { hashes.with { $0[name] } }

    func keep(_ name: String, _ hash: String) {
        hashes.with {
            if $0.count >= provenMax { $0.removeAll() }
            $0[name] = hash
        }
    }
}

private let rememberedMax = 4
private let provenMax = 500
