// The text of an inclusion proof (c2sp.org/tlog-proof, version 1): index, path and the whole checkpoint it leads to. Go's
// reader takes more (carriage returns, leading zeros, an empty `extra`).

/// `extra` is application data that nothing authenticates: here the 80 octets of the VRF proof, to be verified by itself.
/// `path` runs from the leaf's sibling up. `checkpoint` is a signed note, kept as it was.
struct TlogProof: Sendable {
    let extra: [UInt8]?
    let index: Int
    let path: [[UInt8]]
    let checkpoint: String
}

/// Reads the text of a proof. Nothing is verified, and the checkpoint is not looked into. Throws `malformed` for any deviation
/// from the specification, an index from 2^53 on, above 63 hashes, or 48 KiB of extra data.
func parseProof(_ text: String) throws(LogError) -> TlogProof {
    let octets = Array(text.utf8)
    // The checkpoint has a blank line of its own, so the first one ends the proof.
    guard let end = octets.indices.dropLast().first(where: { octets[$0] == newline && octets[$0 + 1] == newline }) else {
        throw .malformed("proof has no blank line")
    }
    let checkpoint = octets[(end + 2)...]
    guard checkpoint.first != newline, checkpoint.last == newline else {
        throw .malformed("proof checkpoint is not lines of text")
    }
    var rest = linesOf(octets[..<end])[...]
    guard let header = rest.popFirst(), header.elementsEqual(proofHeader.utf8) else {
        throw .malformed("proof does not start with \(proofHeader)")
    }
    var extra: [UInt8]?
    if let line = rest.first, let base64 = after("extra ", in: line) {
        let decoded = try decodeBase64(textOf(base64))
        guard (1...extraOctetsMax).contains(decoded.count) else {
            throw .malformed("proof extra data has \(decoded.count) octets")
        }
        extra = decoded
        rest.removeFirst()
    }
    guard let indexLine = rest.popFirst(), let digits = after("index ", in: indexLine) else {
        throw .malformed("proof has no index where it belongs")
    }
    let index = try parseDecimal(textOf(digits))
    if rest.count > pathHashesMax { throw .malformed("proof path has \(rest.count) hashes") }
    return TlogProof(extra: extra, index: index, path: try rest.map(parseHash), checkpoint: textOf(checkpoint))
}

private func parseHash(_ line: ArraySlice<UInt8>) throws(LogError) -> [UInt8] {
    let hash = try decodeBase64(textOf(line))
    if hash.count != hashOctets { throw .malformed("proof path has a hash that is not 32 octets") }
    return hash
}

/// The first line of a proof, which names its form and version.
private let proofHeader = "c2sp.org/tlog-proof@v1"

/// No tree the C2SP protocols know is deeper.
private let pathHashesMax = 63

/// Go's reader refuses lines above 64 KiB, which is this in base64.
private let extraOctetsMax = 48 * 1024
