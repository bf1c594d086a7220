// Hash tiles (c2sp.org/tlog-tiles): their names, their width in a tree, and the hashes in them. A tile of level L holds up to 256
// hashes side by side, those of the complete subtrees of level 8 * L.

/// `level` is 0 to 63. `width` counts its hashes: 1 to 256, 256 = full.
public struct Tile: Sendable, Hashable {
    public let level: Int
    public let index: Int
    public let width: Int

    package init(level: Int, index: Int, width: Int) {
        self.level = level
        self.index = index
        self.width = width
    }
}

private let tileHeight = 8
let tileWidth = 256
private let tileLevelMax = 63

/// The tile's path without a leading slash, `tile/0/x001/x234/067.p/5`. Throws `malformed` when there is no such.
func formatTilePath(_ tile: Tile) throws(LogError) -> String {
    guard (0...tileLevelMax).contains(tile.level), (1...tileWidth).contains(tile.width), (0...safeMax).contains(tile.index) else {
        throw .malformed("no tile has level \(tile.level), index \(tile.index) and width \(tile.width)")
    }
    return "tile/\(tile.level)/\(placeOf(tile.index, tile.width))"
}

/// `width` counts the entries of the bundle, those of the tile of level 0 with this `index`: 1 to 256, 256 = full.
struct EntryBundle: Sendable, Hashable {
    let index: Int
    let width: Int
}

/// The bundle's path without a leading slash, `tile/entries/x001/067.p/5`.
func formatBundlePath(_ bundle: EntryBundle) -> String { "tile/entries/\(placeOf(bundle.index, bundle.width))" }

/// The entries of a bundle. Throws `malformed` when it ends inside an entry or holds more than 256.
func parseBundle(_ octets: [UInt8]) throws(LogError) -> [[UInt8]] {
    var entries: [[UInt8]] = []
    var at = 0
    while at < octets.count {
        let start = at + 2
        let length = start > octets.count ? 0 : Int(bigEndian(octets, at: at, count: 2))
        guard start + length <= octets.count else { throw .malformed("bundle ends inside the entry at octet \(at)") }
        entries.append(Array(octets[start..<start + length]))
        at = start + length
    }
    if entries.count > tileWidth { throw .malformed("bundle of \(entries.count) entries exceeds \(tileWidth)") }
    return entries
}

private func placeOf(_ index: Int, _ width: Int) -> String {
    var groups = threeDigits(index % 1000)
    var rest = index / 1000
    while rest > 0 {
        groups = "x\(threeDigits(rest % 1000))/\(groups)"
        rest /= 1000
    }
    return width == tileWidth ? groups : "\(groups).p/\(width)"
}

/// The tile's width in a tree of `treeSize`: 256 when full, 0 when the tree does not reach it.
func widthOfTile(level: Int, index: Int, treeSize: Int) -> Int {
    // Complete subtrees of 256^level leaves. From level 8 on no tree below 2^53 has one.
    let hashes = level >= 8 ? 0 : treeSize >> (tileHeight * level)
    return min(max(hashes - index * tileWidth, 0), tileWidth)
}

/// The part of a hash tile that a node covers.
struct TileRange {
    let level: Int
    let index: Int
    let positions: Range<Int>
}

/// Where the hash of a node comes from. One position where the hash is stored as it is.
func tileOfNode(_ node: Node) -> TileRange {
    let covered = 1 << (node.level % tileHeight)
    let perTile = tileWidth / covered
    let start = node.index % perTile * covered
    return TileRange(level: node.level / tileHeight, index: node.index / perTile, positions: start..<start + covered)
}

/// The hash of a node out of the octets of its tile, which may be partial as long as it reaches over the node. Throws `malformed`
/// when the tile is too narrow.
func hashInTile(_ tile: [UInt8], _ node: Node) throws(LogError) -> [UInt8] {
    let positions = tileOfNode(node).positions
    guard tile.count >= positions.upperBound * hashOctets else {
        throw .malformed("tile of \(tile.count) octets does not reach position \(positions.upperBound)")
    }
    var hashes = positions.map { Array(tile[$0 * hashOctets..<($0 + 1) * hashOctets]) }
    while hashes.count > 1 {
        hashes = try stride(from: 0, to: hashes.count, by: 2).map { at throws(LogError) in
            try hashNode(hashes[at], hashes[at + 1])
        }
    }
    return hashes[0]
}

private func threeDigits(_ value: Int) -> String { padded(value, digits: 3) }
