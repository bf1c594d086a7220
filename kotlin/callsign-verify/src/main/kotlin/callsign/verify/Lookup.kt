/**
 * Checks one result of `POST /api/get-public-keys` as c2sp.org/tlog-proof says, trusting nothing but the public keys of the
 * log: the VRF proof too, so that an entry of another user or device cannot stand in for the one asked about.
 */
package callsign.verify

import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * The facts the app knows before it reads the answer. [vrfHash] is the hash that was asked for, base64 of 64 octets.
 * [publicKey], base64, is the key the app holds for this device, when it has one: its own, or one pinned earlier.
 */
public data class LookupClaim(
    val userId: ULong,
    val deviceId: ULong,
    val vrfHash: String? = null,
    val publicKey: String? = null,
)

/** One result of the answer: the key and its hash in base64, and the text of the proof. */
public data class LookupResult(val publicKey: String, val vrfHash: String, val proof: String)

/** The verdict on one result: [VerifiedKey] or [Refusal]. */
public sealed interface LookupVerdict : LookupOutcome

/** [LookupVerdict], or [Unanswered]. */
public sealed interface LookupOutcome

/**
 * The log holds this key for this user and device, at leaf [index] of the tree of [checkpoint]. [completeness] says whether it is
 * the newest of its hash: [verifyLookup] does not ask, [LogClient] does.
 */
public data class VerifiedKey(
    val publicKey: String,
    val vrfHash: String,
    val index: Long,
    override val checkpoint: SignedCheckpoint,
    val completeness: Completeness = Completeness.Unindexed,
) : LookupVerdict, Checkpointed

/** A check that held, for a readable account. */
public data class CheckPassed(val check: Check, val detail: String)

/**
 * Checks a result in this order: form, origin and signature of the checkpoint, index, VRF proof and its hash, the entry's
 * path to the root, and last the key the app holds. [onPassed] hears of each check that held. Whether the checkpoint fits
 * those seen before is for [LogClient] to say.
 */
public fun verifyLookup(
    keys: LogKeys,
    claim: LookupClaim,
    result: LookupResult,
    onPassed: (CheckPassed) -> Unit = {},
): LookupVerdict = settled { lookUp(keys, claim, parseResult(result), onPassed) }

/** As [verifyLookup], of a stranger's JSON. */
internal fun verifyLookup(keys: LogKeys, claim: LookupClaim, result: JsonElement?): LookupVerdict =
    settled { lookUp(keys, claim, readResult(result)) {} }

private inline fun settled(act: () -> VerifiedKey): LookupVerdict = try {
    act()
} catch (failed: CheckFailed) {
    failed.refusal
}

private fun lookUp(
    keys: LogKeys,
    claim: LookupClaim,
    result: ParsedResult,
    onPassed: (CheckPassed) -> Unit,
): VerifiedKey {
    val proof = result.proof
    onPassed(CheckPassed(Check.PROOF, "leaf ${proof.index} with a path of ${proof.path.size} hashes"))

    val checkpoint = openSignedCheckpoint(keys, proof.checkpoint)
    onPassed(CheckPassed(Check.SIGNATURE, "${checkpoint.origin} signed tree size ${checkpoint.treeSize}"))
    assertIndex(proof.index, checkpoint)
    onPassed(CheckPassed(Check.INDEX, "leaf ${proof.index} is below tree size ${checkpoint.treeSize}"))

    val provenHash = proveHash(keys, vrfInput(claim.userId, claim.deviceId), result.vrfProof)
    onPassed(CheckPassed(Check.VRF, "the VRF proof holds for ${claim.userId}_${claim.deviceId}"))
    assertHash(provenHash, result.vrfHash, claim.vrfHash ?: result.vrfHash)
    onPassed(CheckPassed(Check.VRF_HASH, "it proves the hash of the answer"))

    assertIncluded(provenHash, result.publicKey, proof, checkpoint)
    onPassed(CheckPassed(Check.INCLUSION, "hash and key are leaf ${proof.index} under the signed root"))
    if (claim.publicKey != null) {
        if (claim.publicKey != result.publicKey)
            throw CheckFailed(Check.PUBLIC_KEY, "the log holds another key for this device")
        onPassed(CheckPassed(Check.PUBLIC_KEY, "it is the key that was expected"))
    }
    return VerifiedKey(result.publicKey, result.vrfHash, proof.index, checkpoint)
}

/** A result taken apart. */
internal class ParsedResult(
    val publicKey: String,
    val vrfHash: String,
    val proof: TlogProof,
    val vrfProof: ByteArray,
)

/** Throws [CheckFailed] at `proof` for whatever is not three texts of their forms: it comes from a stranger's JSON. */
internal fun readResult(result: JsonElement?, vrfHash: String? = null): ParsedResult {
    val members = result as? JsonObject
    val publicKey = textOf(members?.get("publicKey"))
    val hash = vrfHash ?: textOf(members?.get("vrfHash"))
    val proof = textOf(members?.get("proof"))
    if (publicKey == null || hash == null || proof == null)
        throw CheckFailed(Check.PROOF, "the answer lacks its publicKey, vrfHash or proof")
    return parseResult(LookupResult(publicKey, hash, proof))
}

internal fun parseResult(result: LookupResult): ParsedResult = during(Check.PROOF) {
    if (result.publicKey.isEmpty() || !isCanonicalBase64(result.publicKey))
        throw CheckFailed(Check.PROOF, "publicKey is not base64")
    if (decodeBase64(result.vrfHash).size != VRF_HASH_OCTETS)
        throw CheckFailed(Check.PROOF, "vrfHash is not 64 octets")
    val proof = parseProof(result.proof)
    val vrfProof = proof.extra ?: throw CheckFailed(Check.PROOF, "the proof lacks its VRF proof")
    ParsedResult(result.publicKey, result.vrfHash, proof, vrfProof)
}

/** The VRF hash, base64, that the proof proves for [input]. Throws [CheckFailed] at `vrf`. */
internal fun proveHash(keys: LogKeys, input: ByteArray, vrfProof: ByteArray): String {
    val name = "${encodeBase64(input)} ${encodeBase64(vrfProof)}"
    keys.provenHashes.find(name)?.let { return it }
    val hash = encodeBase64(during(Check.VRF) { verifyVrf(keys.vrfPublicKey, input, vrfProof) })
    keys.provenHashes.keep(name, hash)
    return hash
}

/** Throws [CheckFailed] at `index` for a leaf beyond the tree. */
internal fun assertIndex(index: Long, checkpoint: SignedCheckpoint) {
    if (index >= checkpoint.treeSize)
        throw CheckFailed(Check.INDEX, "leaf $index is not in a tree of size ${checkpoint.treeSize}")
}

/** Throws [CheckFailed] at `vrfHash`. */
internal fun assertHash(provenHash: String, statedHash: String, askedHash: String) {
    if (provenHash != statedHash)
        throw CheckFailed(Check.VRF_HASH, "the proof is of another hash than the answer states")
    if (provenHash != askedHash) throw CheckFailed(Check.VRF_HASH, "another hash was asked for")
}

/** Rebuilds the entry from hash and key and follows its path to the root. Throws [CheckFailed] at `inclusion`. */
internal fun assertIncluded(vrfHash: String, publicKey: String, proof: TlogProof, checkpoint: SignedCheckpoint) {
    val leafHash = hashLeaf(formatEntry(decodeBase64(vrfHash), publicKey))
    val rootHash = decodeBase64(checkpoint.rootHash)
    during(Check.INCLUSION) {
        verifyInclusion(InclusionClaim(leafHash, proof.index, checkpoint.treeSize, proof.path, rootHash))
    }
}

/** The text; null for anything else. */
internal fun textOf(element: JsonElement?): String? = (element as? JsonPrimitive)?.takeIf { it.isString }?.content
