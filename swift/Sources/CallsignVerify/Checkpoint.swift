// Checkpoints (c2sp.org/tlog-checkpoint): the signed note by which a log commits to a tree size and a root hash.

/// A checkpoint's content. `extensions` are lines without their newline.
struct Checkpoint: Sendable {
    let origin: String
    let treeSize: Int
    let rootHash: [UInt8]
    let extensions: [String]
}

/// Longer origins are refused by other readers, and cannot be cosigned.
private let originOctetsMax = 255

/// Reads the text of a checkpoint, without its signatures. Throws `malformed` for everything the specification does not allow and
/// for sizes from 2^53 on.
func parseCheckpoint(_ text: String) throws(LogError) -> Checkpoint {
    guard text.utf8.last == newline, isNoteText(text.utf8) else { throw .malformed("checkpoint is not lines of text") }
    let lines = linesOf(text.utf8.dropLast())
    if lines.count < 3 { throw .malformed("checkpoint has not three lines") }
    guard (1...originOctetsMax).contains(lines[0].count) else {
        throw .malformed("checkpoint origin has \(lines[0].count) octets")
    }
    let extensions = lines.dropFirst(3)
    if extensions.contains(where: \.isEmpty) { throw .malformed("checkpoint has an empty extension line") }
    let rootHash = try decodeBase64(textOf(lines[2]))
    guard rootHash.count == hashOctets else { throw .malformed("checkpoint root hash has \(rootHash.count) octets, not 32") }
    let treeSize = try parseDecimal(textOf(lines[1]))
    return Checkpoint(origin: textOf(lines[0]), treeSize: treeSize, rootHash: rootHash, extensions: extensions.map(textOf))
}
