// Verification of the VRF that names a device in the log: c2sp.org/vrf-r255, which is ECVRF-RISTRETTO255-SHA512 in the terms of
// RFC 9381, and names are its own. All integers are little-endian. Everything here is public.

/// The VRF input of one device: ASCII `<userID>_<deviceID>`, both decimal without leading zeros.
package func vrfInput(userID: UInt64, deviceID: UInt64) -> [UInt8] { Array("\(userID)_\(deviceID)".utf8) }

/// The public key in standard base64. Throws `keyInvalid` unless it is the canonical encoding of a group element other than the
/// identity, under which anyone can make proofs.
func parseVrfPublicKey(_ base64: String) throws(LogError) -> [UInt8] {
    guard let publicKey = base64Octets(base64) else { throw .keyInvalid("vrf public key is not base64") }
    _ = try decodePublicKey(publicKey)
    return publicKey
}

/// The VRF hash beta of the input under the key, 64 octets, once the proof shows it (ECVRF_verify with validate_key, RFC 9381,
/// section 5.3). Throws `keyInvalid` when the key is not a canonical element or is the identity, and `proofInvalid` when the
/// proof has another length, does not decode or does not hold.
func verifyVrf(publicKey: [UInt8], input: [UInt8], proof: [UInt8]) throws(LogError) -> [UInt8] {
    // 1. to 3. Y, which validate_key refuses when it is the identity.
    let y = try decodePublicKey(publicKey)
    // 4. to 6. Gamma, c and s.
    guard proof.count == proofOctets else { throw .proofInvalid("vrf proof of \(proof.count) octets, not \(proofOctets)") }
    let gammaOctets = Array(proof[..<gammaLength])
    guard let gamma = RistrettoElement(octets: gammaOctets) else { throw .proofInvalid("vrf proof holds no group element") }
    let challenge = proof[gammaLength..<gammaLength + challengeLength]
    // s + q satisfies the same equations; letting it pass would give one input two proofs.
    guard let s = Scalar25519(octets: proof[(gammaLength + challengeLength)...]), let c = Scalar25519(octets: challenge) else {
        throw .proofInvalid("vrf proof holds a scalar that is not reduced")
    }
    // 7. H.
    let h = RistrettoElement(uniform: sha512(suite, encodeToGroup, publicKey, input))
    // 8., 9. U = s*B - c*Y, V = s*H - c*Gamma.
    let u = RistrettoElement(point: sumOfMultiples(s, .ofBase, c, Multiples(-y.point)))
    let v = RistrettoElement(point: sumOfMultiples(s, Multiples(h.point), c, Multiples(-gamma.point)))
    // 10., 11. c' must be c.
    let expected = sha512(suite, challengeHash, publicKey, h.octets, gammaOctets, u.octets, v.octets, back)
    guard expected.starts(with: challenge) else { throw .proofInvalid("vrf proof does not hold for this key and input") }
    return sha512(suite, proofToHash, gammaOctets, back)
}

/// Whether two proofs for one input, the first already verified, have the same hash. Gamma fixes the hash, so the second need not
/// be verified.
func isOfSameHash(_ proof: [UInt8], _ other: [UInt8]) -> Bool {
    other.count == proof.count && proof.prefix(gammaLength) == other.prefix(gammaLength)
}

private func decodePublicKey(_ publicKey: [UInt8]) throws(LogError) -> RistrettoElement {
    guard let y = RistrettoElement(octets: publicKey) else { throw .keyInvalid("vrf public key is no group element") }
    // The identity has one encoding.
    if publicKey.allSatisfy({ $0 == 0 }) { throw .keyInvalid("vrf public key is the identity") }
    return y
}

/// Gamma (32), c (16), s (32).
private let proofOctets = 80
private let gammaLength = 32
private let challengeLength = 16

/// The suite string that every hash of this VRF begins with.
private let suite: [UInt8] = [0xff] + Array("c2sp.org/vrf-r255".utf8)

/// Octets after the suite string in each hash (RFC 9381, section 5); `back` ends the last two.
private let encodeToGroup: [UInt8] = [0x82]
private let challengeHash: [UInt8] = [0x02]
private let proofToHash: [UInt8] = [0x03]
private let back: [UInt8] = [0x00]
