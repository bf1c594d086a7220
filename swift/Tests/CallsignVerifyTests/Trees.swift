import TestSupport

@testable import CallsignVerify

/// RFC 6962, section 2.1, word for word: the root of the leaves.
func naiveRoot(_ leaves: ArraySlice<[UInt8]>) throws(LogError) -> [UInt8] {
    if leaves.count < 2 { return leaves.first ?? sha256() }
    var split = 1
    while 2 * split < leaves.count { split *= 2 }
    return try hashNode(naiveRoot(leaves.prefix(split)), naiveRoot(leaves.dropFirst(split)))
}

/// Reads the complete subtrees of a tree with these leaves.
func readerOf(_ leaves: [[UInt8]]) -> ReadHashes {
    { nodes throws(LogError) in
        try nodes.map { node throws(LogError) in
            try naiveRoot(leaves[node.index << node.level..<(node.index + 1) << node.level])
        }
    }
}
