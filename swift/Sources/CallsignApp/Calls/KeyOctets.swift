// The octets of this device's keys by number, in memory and nowhere else.
import CallsignVerify

@CallsignActor final class KeyOctets {
    private struct Place: Hashable {
        let callId: String
        let epoch: Int
        let key: Int
    }

    private struct Purpose: Equatable {
        let callId: String
        let epoch: Int
        let keyMembers: String
    }

    private var secrets: [Int: Secret] = [:]

    /// A fingerprint takes thousands of hashes.
    private var epochKeys: [Place: EpochKey] = [:]

    /// By the hash of each key that there ever was: its call, epoch and set.
    private var purposes: [[UInt8]: Purpose] = [:]

    /// Those hashes, the oldest first.
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
        let purpose = Purpose(callId: binding.callId, epoch: binding.epoch, keyMembers: keyMembers)
        let hash = sha256(key)
        if let before = purposes[hash] {
            if before == purpose { return }
            let sentence = "A key was sent that another epoch of a call has had."
            throw CallsignError(CallsignError.LocalCode.callKeyReused, sentence)
        }
        purposes[hash] = purpose
        hashes.append(hash)
        if hashes.count > Self.purposesMax { purposes[hashes.removeFirst()] = nil }
    }

    /// It stays whole when the key is wiped. Nil for a key that was wiped.
    func copyOf(_ key: Int) -> [UInt8]? { secrets[key]?.copy }

    /// Nil for a key that was wiped, and for what is no call or epoch.
    func epochKey(_ callId: String, _ held: HeldKey) -> EpochKey? {
        let place = Place(callId: callId, epoch: held.epoch, key: held.key)
        if let known = epochKeys[place] { return known }
        let binding = KeyBinding(callId: callId, epoch: held.epoch)
        guard let secret = secrets[held.key], let setHash = try? hashOfSet(held.set.keyMembers),
            let fingerprint = try? fingerprintOf(secret.copy, setHash: setHash, binding: binding)
        else { return nil }
        let epochKey = EpochKey(epoch: held.epoch, secret: secret, fingerprint: fingerprint)
        epochKeys[place] = epochKey
        return epochKey
    }

    /// Overwrites and forgets it. Copies that an app took stay.
    func wipe(_ key: Int) {
        epochKeys = epochKeys.filter { $0.key.key != key }
        secrets.removeValue(forKey: key)?.wipe()
    }

    /// More than a call has epochs, and a few hundred octets each.
    private static let purposesMax = 10_000
}
