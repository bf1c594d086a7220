// The entry of this log, `<vrfHash base64>\n<publicKey base64>\n`: an identity hash bound to a device's public key. The form is
// fixed for the life of a log.

/// The hash output of c2sp.org/vrf-r255, never truncated.
let vrfHashOctets = 64

/// The octets of an entry, 134 for a key of 32 octets. Throws `malformed` unless the hash has 64 octets and the key is non-empty
/// canonical base64.
func formatEntry(vrfHash: [UInt8], publicKey: String) throws(LogError) -> [UInt8] {
    guard vrfHash.count == vrfHashOctets else {
        throw .malformed("VRF hash has \(vrfHash.count) octets, not \(vrfHashOctets)")
    }
    guard !publicKey.isEmpty, base64Octets(publicKey) != nil else { throw .malformed("public key is not canonical base64") }
    return Array("\(encodeBase64(vrfHash))\n\(publicKey)\n".utf8)
}
