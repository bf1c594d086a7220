// The leaves of an index's output log, and the keys and values of its map. A leaf says that the map over the entries of a
// checkpoint of the log has a root: `{"input_log_cp": base64, "index_root": [32 numbers]}`, as transparency.dev's verifiable
// index has it.

/// `inputCheckpoint` is a signed note of the log, `root` the root of the map over all entries of its tree.
struct IndexLeaf: Sendable {
    let inputCheckpoint: String
    let root: [UInt8]
}

/// The origin of the output log of a log's index.
func indexOriginOf(_ origin: String) -> String { "\(origin)/index" }

/// The key of all entries under a VRF hash, in base64: SHA-256 of that text.
func indexKeyOf(_ vrfHash: String) -> [UInt8] { sha256(Array(vrfHash.utf8)) }

/// The value that the map has for these leaves of the log, which ascend.
func indexValueOf(_ indexes: [Int]) -> [UInt8] {
    sha256(indexes.flatMap { bigEndianOctets(UInt64($0), count: 8) })
}

/// Throws `malformed` for octets that no index writes.
func parseIndexLeaf(_ octets: [UInt8]) throws(LogError) -> IndexLeaf {
    if octets.count > indexLeafOctetsMax { throw malformedLeaf("is too long") }
    guard let behind = after("{\"input_log_cp\":\"", in: octets[...]),
        let inputEnd = behind.firstIndex(of: UInt8(ascii: "\"")),
        let rest = after("\",\"index_root\":[", in: behind[inputEnd...]),
        let rootEnd = rest.firstIndex(of: UInt8(ascii: "]")),
        rest[rootEnd...].elementsEqual("]}".utf8)
    else { throw malformedLeaf("is not of its form") }
    let root = rest[..<rootEnd].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map(octetOf)
    guard root.count == hashOctets, !root.contains(nil) else { throw malformedLeaf("has a root that is not 32 octets") }
    let input = try decodeBase64(textOf(behind[..<inputEnd]))
    return IndexLeaf(inputCheckpoint: try decodeUTF8(input), root: root.compactMap { $0 })
}

/// The octet that decimal digits without leading zeros spell.
private func octetOf(_ digits: ArraySlice<UInt8>) -> UInt8? { uint64(textOf(digits)).flatMap { UInt8(exactly: $0) } }

private func malformedLeaf(_ reason: String) -> LogError { .malformed("leaf of the index \(reason)") }

/// An entry of a log of this kind has at most as many.
let indexLeafOctetsMax = 65_535
