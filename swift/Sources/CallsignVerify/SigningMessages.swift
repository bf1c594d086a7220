// What a device signs with its signing key besides device lists. Each message begins with a line of its own, and so does a
// list, so that no signature can be taken for another.

/// For `register_device`: the device has the signing key. `challenge` has 32 octets, from sign-in. Throws `malformed` for another
/// length.
public func possessionMessage(_ challenge: [UInt8]) throws(LogError) -> [UInt8] {
    Array("callsign possession v1\n".utf8) + (try ofLength(challenge, 32))
}

/// For `verify-login`: a listed device signs in again. `challengeId` has 16 octets, the code's challenge. Throws `malformed` for
/// another length.
public func signInMessage(_ challengeId: [UInt8]) throws(LogError) -> [UInt8] {
    Array("callsign sign-in v1\n".utf8) + (try ofLength(challengeId, signInIdOctets))
}

/// A listed device's answer to a sign-in that waits. `id` has 16 octets, the waiting sign-in's. Throws `malformed` for another
/// length.
public func signInAnswerMessage(userId: UInt64, id: [UInt8], isApproved: Bool) throws(LogError) -> [UInt8] {
    let line = Array("callsign sign-in answer v1\n".utf8)
    return line + bigEndianOctets(userId, count: 8) + (try ofLength(id, signInIdOctets)) + [isApproved ? 1 : 0]
}

/// Beside a fresh proof of who the user is: the device that asks is a listed one. `proof` has 32 octets: SHA-256 of a text,
/// such as a code's challengeId. Throws `malformed` for another length.
public func stepUpMessage(userId: UInt64, proof: [UInt8]) throws(LogError) -> [UInt8] {
    Array("callsign step-up v1\n".utf8) + bigEndianOctets(userId, count: 8) + (try ofLength(proof, 32))
}

/// A challenge's id, and a waiting sign-in's.
private let signInIdOctets = 16
