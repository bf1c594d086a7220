import CallsignVerify

/// The octets of this device's keys by number, in memory and nowhere else.
final class CallKeys {
    private struct Use: Equatable {
        let callId: String
        let epoch: Int
        let keyMembers: String
    }

    private struct Place: Hashable {
        let callId: String
        let epoch: Int
        let key: Int
    }

    private var secrets: [Int: Secret] = [:]

    /// A fingerprint takes thousands of hashes.
    private var epochKeys: [Place: EpochKey] = [:]

    /// By the hash of each key that there ever was, and these in the order in which they came.
    private var uses: [[UInt8]: Use] = [:]
    private var hashes: [[UInt8]] = []

    /// 32 random octets.
    func make(_ key: Int) { secrets[key] = Secret(makeCallKey()) }

    /// Gives its number, which equal octets share. Throws as `bind`.
    func put(_ key: Int, _ opened: [UInt8], _ binding: KeyBinding, keyMembers: String) throws -> Int {
        try bind(opened, binding, keyMembers: keyMembers)
        if let known = secrets.first(where: { $0.value.copy == opened }) { return known.key }
        secrets[key] = Secret(opened)
        return key
    }

    /// Notes what a key is for. Throws `CALL_KEY_REUSED` where it had another call, epoch or set.
    func bind(_ key: [UInt8], _ binding: KeyBinding, keyMembers: String) throws {
        let use = Use(callId: binding.callId, epoch: binding.epoch, keyMembers: keyMembers)
        let hash = sha256(key)
        if let before = uses[hash] {
            if before == use { return }
            let sentence = "A key was sent that another epoch of a call has had."
            throw CallsignError(CallsignError.LocalCode.callKeyReused, sentence)
        }
        uses[hash] = use
        hashes.append(hash)
        if hashes.count > usesMax { uses[hashes.removeFirst()] = nil }
    }

    /// A copy, which stays whole when the key is wiped. Nil where no key has the number.
    func copy(of key: Int) -> [UInt8]? { secrets[key]?.copy }

    /// Nil where no key has the number.
    func epochKey(callId: String, _ held: HeldKey) throws -> EpochKey? {
        let place = Place(callId: callId, epoch: held.epoch, key: held.key)
        if let known = epochKeys[place] { return known }
        guard let secret = secrets[held.key] else { return nil }
        let binding = KeyBinding(callId: callId, epoch: held.epoch)
        let digits = try fingerprintOf(secret.copy, setHash: hashOfSet(held.set.keyMembers), binding: binding)
        let made = EpochKey(epoch: held.epoch, secret: secret, fingerprint: digits)
        epochKeys[place] = made
        return made
    }

    /// Overwrites and forgets it.
    func wipe(_ key: Int) {
        secrets.removeValue(forKey: key)?.wipe()
        epochKeys = epochKeys.filter { $0.key.key != key }
    }
}

/// More than a call has epochs, and a few hundred octets each.
private let usesMax = 10_000
