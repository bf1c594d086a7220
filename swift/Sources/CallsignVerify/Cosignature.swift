// Cosignatures of witnesses (c2sp.org/tlog-cosignature), Ed25519 with a time (type 0x04): the witness has seen that this
// checkpoint extends every one of the log that it had cosigned before. Other types are signatures of unknown keys.

private let cosignatureType: UInt8 = 0x04

/// Reads a witness's vkey. One of type 0x01 is taken as well, as Go's libraries do: the same key, under the id that its
/// cosignatures have. Throws `keyInvalid`.
func parseWitnessKey(_ vkey: String) throws(LogError) -> VerifierKey {
    let key = try parseTypedKey(vkey, types: [cosignatureType, ed25519Type])
    let keyId = keyIdOf(key.name, cosignatureType, key.publicKey)
    return VerifierKey(name: key.name, keyId: keyId, publicKey: key.publicKey)
}

/// The time at which the witness cosigned this text, in POSIX seconds, by what follows the key id in its signature line; nil
/// where it did not.
func cosignedAtSeconds(_ text: String, _ witness: VerifierKey, _ cosignature: [UInt8]) -> Int? {
    guard cosignature.count == timeOctets + signatureOctets else { return nil }
    let seconds = bigEndian(cosignature, count: timeOctets)
    guard seconds <= UInt64(safeMax) else { return nil }
    let message = Array("cosignature/v1\ntime \(seconds)\n\(text)".utf8)
    let signature = Array(cosignature[timeOctets...])
    return ed25519Verify(publicKey: witness.publicKey, message: message, signature: signature) ? Int(seconds) : nil
}

private let timeOctets = 8
private let signatureOctets = 64
