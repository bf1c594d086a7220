// Whether an old tree is the beginning of a new one, found out from the log's hash tiles (c2sp.org/tlog-tiles) and from nothing
// else. What tiles say counts only once it leads to the signed root of the new tree.

/// Gives the octets of a tile of the new tree, in the width asked for. Throws as it likes when it cannot.
public typealias FetchTile = @Sendable (Tile) async throws -> [UInt8]

/// The verdict of `consistencyFromTiles`.
public enum TileConsistency: Sendable, Equatable {
    case consistent

    /// `check` is `tiles` when what was fetched does not lead to the new root, so that nothing is known of the old tree. It is
    /// `consistency` when it does, and the old tree is not what the new one begins with: the log has rewritten its history.
    case inconsistent(check: Check, detail: String)
}

/// Checks that the tree of `older` is the beginning of `newer`'s tree, both with signatures that held. Fetches each tile that the
/// proof needs once, at most a dozen, side by side, and none for trees of one size. Throws `malformed` when `older` is the larger
/// one, and whatever `fetchTile` throws.
public func consistencyFromTiles(
    _ fetchTile: @escaping FetchTile, older: SignedCheckpoint, newer: SignedCheckpoint
) async throws -> TileConsistency {
    let proofNodes = try consistencyNodes(older.treeSize, newer.treeSize)
    if older.treeSize == 0 || older.treeSize == newer.treeSize { return compareWithoutTiles(older, newer) }
    let tiles = try await fetchTiles(fetchTile, try rootNodes(older.treeSize) + proofNodes, newer.treeSize)
    if let (tile, octets) = tiles.first(where: { tile, octets in octets.count != tile.width * hashOctets }) {
        let detail = "tile \(tile.index) of level \(tile.level) has \(octets.count) octets instead of \(tile.width) hashes"
        return .inconsistent(check: .tiles, detail: detail)
    }
    return try compareInTiles(tiles, older, newer)
}

private func compareWithoutTiles(_ older: SignedCheckpoint, _ newer: SignedCheckpoint) -> TileConsistency {
    if older.treeSize == 0 && !isSame(older.rootHash, encodeBase64(emptyRoot)) {
        return .inconsistent(check: .consistency, detail: "the tree without entries has another root")
    }
    if older.treeSize == newer.treeSize && !isSame(older.rootHash, newer.rootHash) {
        return .inconsistent(check: .consistency, detail: "tree size \(older.treeSize) has two roots")
    }
    return .consistent
}

/// The old root is computed from the tiles, not assumed, to distinguish a bad tile from a bad log.
private func compareInTiles(
    _ tiles: [Tile: [UInt8]], _ older: SignedCheckpoint, _ newer: SignedCheckpoint
) throws(LogError) -> TileConsistency {
    let readHashes = hashReader(tiles, newer.treeSize)
    let oldRoot = try rootHash(older.treeSize, readHashes)
    let proof = try proveConsistency(older.treeSize, newer.treeSize, readHashes)
    let newRoot = try decodeBase64(newer.rootHash)
    let claim = ConsistencyClaim(
        oldSize: older.treeSize, oldRoot: oldRoot, newSize: newer.treeSize, newRoot: newRoot, proof: proof)
    do {
        try verifyConsistency(claim)
    } catch {
        return .inconsistent(check: .tiles, detail: "the tiles do not lead to the root of size \(newer.treeSize)")
    }
    if oldRoot == (try decodeBase64(older.rootHash)) { return .consistent }
    let detail = "the tree of size \(newer.treeSize) does not begin with that of size \(older.treeSize)"
    return .inconsistent(check: .consistency, detail: detail)
}

/// The tiles that hold the nodes, each as wide as a tree of `treeSize` has it.
func fetchTiles(_ fetchTile: @escaping FetchTile, _ nodes: [Node], _ treeSize: Int) async throws -> [Tile: [UInt8]] {
    try await withThrowingTaskGroup(of: (Tile, [UInt8]).self) { group in
        for tile in Set(nodes.map { tileFor($0, treeSize) }) {
            group.addTask { (tile, try await fetchTile(tile)) }
        }
        return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
}

/// Reads nodes of a tree of `treeSize` out of its tiles. Throws `malformed` where a tile is not there or too narrow.
func hashReader(_ tiles: [Tile: [UInt8]], _ treeSize: Int) -> ReadHashes {
    { nodes throws(LogError) in
        try nodes.map { node throws(LogError) in
            guard let tile = tiles[tileFor(node, treeSize)] else { throw .malformed("a tile is not there") }
            return try hashInTile(tile, node)
        }
    }
}

/// The tile that holds the node, as wide as a tree of `treeSize` has it: only that width is sure to be there.
private func tileFor(_ node: Node, _ treeSize: Int) -> Tile {
    let range = tileOfNode(node)
    let width = widthOfTile(level: range.level, index: range.index, treeSize: treeSize)
    return Tile(level: range.level, index: range.index, width: width)
}
