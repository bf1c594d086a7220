// Checks one result of `POST /api/get-public-keys` as c2sp.org/tlog-proof says, trusting nothing but the public keys of the log:
// the VRF proof too, so that an entry of another user or device cannot stand in for the one asked about.

/// The facts the app knows before it reads the answer.
public struct LookupClaim: Sendable, Equatable {
    public var userId: UInt64
    public var deviceId: UInt64

    /// The hash that was asked for, base64 of 64 octets.
    public var vrfHash: String?

    /// The key, base64, that the app holds for this device, when it has one: its own, or one pinned earlier.
    public var publicKey: String?

    public init(userId: UInt64, deviceId: UInt64, vrfHash: String? = nil, publicKey: String? = nil) {
        self.userId = userId
        self.deviceId = deviceId
        self.vrfHash = vrfHash
        self.publicKey = publicKey
    }
}

/// One result of the answer: the key and its hash in base64, and the text of the proof.
public struct LookupResult: Sendable, Equatable {
    public let publicKey: String
    public let vrfHash: String
    public let proof: String

    public init(publicKey: String, vrfHash: String, proof: String) {
        self.publicKey = publicKey
        self.vrfHash = vrfHash
        self.proof = proof
    }
}

/// The log holds this key for this user and device, at leaf `index` of the tree of `checkpoint`.
public struct VerifiedKey: Checkpointed, Sendable, Equatable {
    public let publicKey: String
    public let vrfHash: String
    public let index: Int
    public let checkpoint: SignedCheckpoint

    /// Whether it is the newest of its hash: `verifyLookup` does not ask, `LogClient` does.
    public internal(set) var completeness: Completeness = .unindexed
}

/// A check that held, for a readable account.
public struct CheckPassed: Sendable, Equatable {
    public let check: Check
    public let detail: String
}

/// Checks a result in this order: form, origin and signature of the checkpoint, index, VRF proof and its hash, the entry's path
/// to the root, and last the key the app holds. `onPassed` hears of each check that held. Whether the checkpoint fits those seen
/// before is for `LogClient` to say.
public func verifyLookup(
    _ keys: LogKeys,
    _ claim: LookupClaim,
    _ result: LookupResult,
    onPassed: (CheckPassed) -> Void = { _ in }
) -> Verdict<VerifiedKey> {
    verdict { () throws(CheckFailed) in try lookUp(keys, claim, parseResult(result), onPassed) }
}

/// As `verifyLookup`, of a stranger's JSON.
package func verifyLookup(_ keys: LogKeys, _ claim: LookupClaim, json: JSONValue?) -> Verdict<VerifiedKey> {
    verdict { () throws(CheckFailed) in try lookUp(keys, claim, readResult(json)) { _ in } }
}

/// A check that fails is the verdict.
func verdict<Value>(_ act: () throws(CheckFailed) -> Value) -> Verdict<Value> {
    do {
        return .holds(try act())
    } catch {
        return .refused(error.refusal)
    }
}

private func lookUp(
    _ keys: LogKeys,
    _ claim: LookupClaim,
    _ result: ParsedResult,
    _ onPassed: (CheckPassed) -> Void
) throws(CheckFailed) -> VerifiedKey {
    func passed(_ check: Check, _ detail: String) { onPassed(CheckPassed(check: check, detail: detail)) }
    let proof = result.proof
    passed(.proof, "leaf \(proof.index) with a path of \(proof.path.count) hashes")

    let checkpoint = try openSignedCheckpoint(keys, proof.checkpoint)
    passed(.signature, "\(checkpoint.origin) signed tree size \(checkpoint.treeSize)")
    try assertIndex(proof.index, checkpoint)
    passed(.index, "leaf \(proof.index) is below tree size \(checkpoint.treeSize)")

    let provenHash = try proveHash(keys, vrfInput(userID: claim.userId, deviceID: claim.deviceId), result.vrfProof)
    passed(.vrf, "the VRF proof holds for \(claim.userId)_\(claim.deviceId)")
    try assertHash(provenHash, stated: result.vrfHash, asked: claim.vrfHash ?? result.vrfHash)
    passed(.vrfHash, "it proves the hash of the answer")

    try assertIncluded(provenHash, result.publicKey, proof, checkpoint)
    passed(.inclusion, "hash and key are leaf \(proof.index) under the signed root")
    if let publicKey = claim.publicKey {
        guard isSame(publicKey, result.publicKey) else {
            throw CheckFailed(.publicKey, "the log holds another key for this device")
        }
        passed(.publicKey, "it is the key that was expected")
    }
    return VerifiedKey(publicKey: result.publicKey, vrfHash: result.vrfHash, index: proof.index, checkpoint: checkpoint)
}

/// A result taken apart.
struct ParsedResult {
    let publicKey: String
    let vrfHash: String
    let proof: TlogProof
    let vrfProof: [UInt8]
}

/// Throws at `proof` for whatever is not three texts of their forms: it comes from a stranger's JSON.
func readResult(_ result: JSONValue?, vrfHash: String? = nil) throws(CheckFailed) -> ParsedResult {
    guard let publicKey = result?["publicKey"]?.string, let proof = result?["proof"]?.string,
        let vrfHash = vrfHash ?? result?["vrfHash"]?.string
    else { throw CheckFailed(.proof, "the answer lacks its publicKey, vrfHash or proof") }
    return try parseResult(LookupResult(publicKey: publicKey, vrfHash: vrfHash, proof: proof))
}

func parseResult(_ result: LookupResult) throws(CheckFailed) -> ParsedResult {
    guard let key = base64Octets(result.publicKey), !key.isEmpty else { throw CheckFailed(.proof, "publicKey is not base64") }
    guard base64Octets(result.vrfHash)?.count == vrfHashOctets else { throw CheckFailed(.proof, "vrfHash is not 64 octets") }
    let proof = try during(.proof) { () throws(LogError) in try parseProof(result.proof) }
    guard let vrfProof = proof.extra else { throw CheckFailed(.proof, "the proof lacks its VRF proof") }
    return ParsedResult(publicKey: result.publicKey, vrfHash: result.vrfHash, proof: proof, vrfProof: vrfProof)
}

/// The VRF hash, base64, that the proof proves for the input. Throws at `vrf`.
func proveHash(_ keys: LogKeys, _ input: [UInt8], _ vrfProof: [UInt8]) throws(CheckFailed) -> String {
    let name = "\(encodeBase64(input)) \(encodeBase64(vrfProof))"
    if let hash = keys.provenHashes.find(name) { return hash }
    let proven = try during(.vrf) { () throws(LogError) in
        try verifyVrf(publicKey: keys.vrfPublicKey, input: input, proof: vrfProof)
    }
    let hash = encodeBase64(proven)
    keys.provenHashes.keep(name, hash)
    return hash
}

/// Throws at `index` for a leaf beyond the tree.
func assertIndex(_ index: Int, _ checkpoint: SignedCheckpoint) throws(CheckFailed) {
    guard index < checkpoint.treeSize else {
        throw CheckFailed(.index, "leaf \(index) is not in a tree of size \(checkpoint.treeSize)")
    }
}

/// Throws at `vrfHash`.
func assertHash(_ provenHash: String, stated: String, asked: String) throws(CheckFailed) {
    guard isSame(provenHash, stated) else { throw CheckFailed(.vrfHash, "the proof is of another hash than the answer states") }
    guard isSame(provenHash, asked) else { throw CheckFailed(.vrfHash, "another hash was asked for") }
}

/// Rebuilds the entry from hash and key and follows its path to the root. Throws at `inclusion`.
func assertIncluded(
    _ vrfHash: String,
    _ publicKey: String,
    _ proof: TlogProof,
    _ checkpoint: SignedCheckpoint
) throws(CheckFailed) {
    try during(.inclusion) { () throws(LogError) in
        try verifyInclusion(
            InclusionClaim(
                leafHash: hashLeaf(formatEntry(vrfHash: decodeBase64(vrfHash), publicKey: publicKey)),
                index: proof.index,
                treeSize: checkpoint.treeSize,
                path: proof.path,
                rootHash: decodeBase64(checkpoint.rootHash)
            )
        )
    }
}
