// A checkpoint in the fewest octets that still prove that the log has signed it:
//
//     tree size u64 big-endian  root hash 32  key id 4  Ed25519 signature 64
//
// The origin is that of the log which both ends have pinned.

/// Nil where the log's own signature is not in the note.
func packCheckpoint(_ checkpoint: SignedCheckpoint) throws(LogError) -> [UInt8]? {
    let begin = lineOf(checkpoint.origin)
    for line in linesOf(checkpoint.note.utf8) {
        guard let base64 = after(begin, in: line) else { continue }
        let signature = try decodeBase64(textOf(base64))
        // Witnesses have lines of another length.
        guard signature.count == signatureOctets else { continue }
        let root = try ofLength(decodeBase64(checkpoint.rootHash), hashOctets)
        return bigEndianOctets(UInt64(bitPattern: Int64(checkpoint.treeSize)), count: 8) + root + signature
    }
    return nil
}

/// The note, with the log's signature alone; nil for octets of another form. Nothing is verified.
func readPackedCheckpoint(_ octets: [UInt8], origin: String) -> String? {
    guard octets.count == packedOctets else { return nil }
    let root = encodeBase64(Array(octets[rootAt..<signatureAt]))
    let signature = encodeBase64(Array(octets[signatureAt...]))
    return "\(origin)\n\(bigEndian(octets, count: 8))\n\(root)\n\n\(lineOf(origin))\(signature)\n"
}

private func lineOf(_ origin: String) -> String { "\(signatureStart)\(origin) " }

private let rootAt = 8
private let signatureAt = rootAt + hashOctets

/// In a signed note's line, for an Ed25519 key: 4 octets of key id, and the signature.
private let signatureOctets = 68
private let packedOctets = signatureAt + signatureOctets
