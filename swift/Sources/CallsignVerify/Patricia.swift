// Proofs in the Merkle Patricia tree of `filippo.io/torchwood/mpt` v0.10; its head comment is the specification. The tree is a
// map, and its hash proves a key's value, or the key's absence.
//
// - a leaf: SHA-256(0 || len(key) || key || len(value) || value), lengths as varints
// - an inner node, where keys differ at bit B: SHA-256(1 || B || left || right), B as a varint; no node has one child
// - the empty tree: SHA-256 of nothing
//
// A proof is the steps from the leaf to the root, each B and the sibling's hash. An absence proof begins with the key and
// value, each with its length, of the leaf where the search for the absent key ends.

/// A lookup's claim about a tree. `value` is nil where the key is said to be absent.
struct PatriciaClaim {
    let root: [UInt8]
    let key: [UInt8]
    let value: [UInt8]?
    let proof: [UInt8]
}

func patriciaLeafHash(_ key: [UInt8], _ value: [UInt8]) -> [UInt8] {
    sha256([0], varint(key.count), key, varint(value.count), value)
}

/// Throws `malformed` unless both hashes have 32 octets.
func patriciaNodeHash(_ bit: Int, _ left: [UInt8], _ right: [UInt8]) throws(LogError) -> [UInt8] {
    guard left.count == hashOctets, right.count == hashOctets else { throw .malformed("hash of a child node is not 32 octets") }
    return sha256([1], varint(bit), left, right)
}

/// The bit of a key at a position: beyond its end a zero octet and then only ones, so that no key is the beginning of another.
func keyBit(_ key: [UInt8], _ position: Int) -> UInt8 {
    let at = position / 8
    if at < key.count { return key[at] >> (7 - position % 8) & 1 }
    return at == key.count ? 0 : 1
}

/// Throws `proofInvalid` unless the proof shows that the tree has the value under the key or, without a value, no such key.
func verifyPatricia(_ claim: PatriciaClaim) throws(LogError) {
    if claim.value == nil && claim.proof.isEmpty {
        if claim.root == emptyRoot { return }
        throw invalid("a tree with keys proves nothing by an empty proof")
    }
    var reader = ProofReader(claim.proof)
    let end: PatriciaPair =
        if let value = claim.value { PatriciaPair(key: claim.key, value: value) } else { try reader.readOther(than: claim.key) }
    guard try reader.climb(claim.key, end) == claim.root else { throw invalid("it does not lead to the root") }
}

private struct PatriciaPair {
    let key: [UInt8]
    let value: [UInt8]
}

private struct ProofReader {
    private let octets: [UInt8]
    private var at = 0

    init(_ octets: [UInt8]) { self.octets = octets }

    mutating func readOther(than key: [UInt8]) throws(LogError) -> PatriciaPair {
        let other = PatriciaPair(key: try take(try readVarint()), value: try take(try readVarint()))
        if other.key == key { throw invalid("it is of the key that is said to be absent") }
        return other
    }

    /// The root above the leaf of `end`, by the turns of `key`, from which it may differ only where no step looks.
    mutating func climb(_ key: [UInt8], _ end: PatriciaPair) throws(LogError) -> [UInt8] {
        var hash = patriciaLeafHash(end.key, end.value)
        var bitAbove = Int.max
        while at < octets.count {
            let bit = try readVarint()
            if bit >= bitAbove { throw invalid("its steps are out of order") }
            bitAbove = bit
            let sibling = try take(hashOctets)
            let side = keyBit(key, bit)
            if side != keyBit(end.key, bit) { throw invalid("it ends beside the way to the key") }
            hash = side == 0 ? try patriciaNodeHash(bit, hash, sibling) : try patriciaNodeHash(bit, sibling, hash)
        }
        return hash
    }

    private mutating func take(_ length: Int) throws(LogError) -> [UInt8] {
        if length > octets.count - at { throw invalid("it is cut off") }
        defer { at += length }
        return Array(octets[at..<at + length])
    }

    /// Below 2^49: more is no proof that fits in memory.
    private mutating func readVarint() throws(LogError) -> Int {
        var value = 0
        for shift in 0..<varintOctetsMax {
            if at == octets.count { throw invalid("it is cut off") }
            let octet = octets[at]
            at += 1
            value |= Int(octet & 0x7f) << (7 * shift)
            if octet < 0x80 { return value }
        }
        throw invalid("a number in it is too long")
    }
}

private func varint(_ value: Int) -> [UInt8] {
    var octets: [UInt8] = []
    var rest = value
    while rest >= 0x80 {
        octets.append(UInt8(rest & 0x7f | 0x80))
        rest >>= 7
    }
    return octets + [UInt8(rest)]
}

private func invalid(_ reason: String) -> LogError { .proofInvalid("proof in the index: \(reason)") }

private let varintOctetsMax = 7
