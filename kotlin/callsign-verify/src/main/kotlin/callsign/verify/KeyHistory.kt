/**
 * The own-key monitor: every key that was ever logged under a device's hash (`POST /api/get-key-history`), proven entry by
 * entry and held against the keys the device itself has made. A second key under one hash is a legal tree; only its owner
 * can tell that it is foreign.
 */
package callsign.verify

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** The answer: entries oldest first, numbers as decimal texts. */
public data class KeyHistory(val entries: List<KeyHistoryEntry>, val treeSize: String)

/** One entry of the answer. */
public data class KeyHistoryEntry(val index: String, val publicKey: String, val proof: String)

/** Whose history was asked for; [vrfHash] is base64 of 64 octets. */
public data class HistoryClaim(val userId: ULong, val deviceId: ULong, val vrfHash: String)

/** A key, base64, and the leaf that holds it. */
public data class LoggedKey(val index: Long, val publicKey: String)

/** The verdict on a history: [VerifiedHistory] or [Refusal]. */
public sealed interface HistoryVerdict

/**
 * Each of these entries, at least one, is in the log under the one hash; only the server vouches that there are no more.
 */
public data class VerifiedHistory(
    val entries: List<LoggedKey>,
    override val checkpoint: SignedCheckpoint,
) : HistoryVerdict, Checkpointed

/** A device's findings about the keys logged in its name. */
public sealed interface OwnKeys {
    /** The log holds exactly the device's own keys, and gives out the newest one. */
    public data object Clean : OwnKeys

    /**
     * [foreign] are logged, but not by this device: someone can be calling in its name. [missing] are made by this device,
     * but not logged: other users get no key, or an older one. [outdated] is an own key, but not the newest one, although
     * other users get it.
     */
    public data class Alert(
        val foreign: List<LoggedKey>,
        val missing: List<String>,
        val outdated: List<LoggedKey>,
    ) : OwnKeys
}

/**
 * Checks a history: one checkpoint, ascending leaves, and for each entry the VRF proof of [claim], the same hash and the
 * path to the root. Refused at `history` for an answer that is no such list, else at the check that failed.
 */
public fun verifyKeyHistory(keys: LogKeys, claim: HistoryClaim, history: KeyHistory): HistoryVerdict = settled {
    val entries = history.entries.map { RawEntry(it.index) { parseResult(LookupResult(it.publicKey, claim.vrfHash, it.proof)) } }
    prove(keys, claim, entries, history.treeSize)
}

/** As [verifyKeyHistory], of a stranger's JSON. */
internal fun verifyKeyHistory(keys: LogKeys, claim: HistoryClaim, history: JsonElement?): HistoryVerdict = settled {
    val members = history as? JsonObject
    val entries = (members?.get("entries") as? JsonArray)?.map { entry ->
        RawEntry(textOf((entry as? JsonObject)?.get("index"))) { readResult(entry, claim.vrfHash) }
    }
    prove(keys, claim, entries.orEmpty(), textOf(members?.get("treeSize")))
}

/**
 * Holds what is logged in a device's name against the keys it has made, oldest first, the last being the one in use.
 * [given] is the key that lookups return to other users: the newest entry, unless an answer shows otherwise.
 */
public fun compareOwnKeys(
    entries: List<LoggedKey>,
    ownKeys: List<String>,
    given: LoggedKey? = entries.lastOrNull(),
): OwnKeys {
    val logged = entries.mapTo(HashSet(), LoggedKey::publicKey)
    val foreign = entries.filter { it.publicKey !in ownKeys }
    val missing = ownKeys.filter { it !in logged }
    val outdated = listOfNotNull(given).filter { it.publicKey in ownKeys && it.publicKey != ownKeys.last() }
    if (foreign.isEmpty() && missing.isEmpty() && outdated.isEmpty()) return OwnKeys.Clean
    return OwnKeys.Alert(foreign, missing, outdated)
}

private class RawEntry(val index: String?, val read: () -> ParsedResult)

private inline fun settled(act: () -> VerifiedHistory): HistoryVerdict = try {
    act()
} catch (failed: CheckFailed) {
    failed.refusal
}

private fun prove(keys: LogKeys, claim: HistoryClaim, raw: List<RawEntry>, treeSize: String?): VerifiedHistory {
    if (raw.isEmpty() || treeSize == null) throw CheckFailed(Check.HISTORY, "the answer has no entries")
    val results = readEntries(raw)
    val checkpoint = openSignedCheckpoint(keys, oneCheckpoint(results))
    if (treeSize != "${checkpoint.treeSize}")
        throw CheckFailed(Check.HISTORY, "it says tree size $treeSize, its proofs ${checkpoint.treeSize}")
    assertHashes(keys, vrfInput(claim.userId, claim.deviceId), results, claim.vrfHash)
    for (result in results) {
        assertIndex(result.proof.index, checkpoint)
        assertIncluded(claim.vrfHash, result.publicKey, result.proof, checkpoint)
    }
    return VerifiedHistory(results.map { LoggedKey(it.proof.index, it.publicKey) }, checkpoint)
}

private fun readEntries(raw: List<RawEntry>): List<ParsedResult> {
    var previous = -1L
    return raw.map { entry ->
        val result = entry.read()
        val index = result.proof.index
        if (entry.index != "$index")
            throw CheckFailed(Check.HISTORY, "an entry has the proof of leaf $index and another index")
        if (index <= previous) throw CheckFailed(Check.HISTORY, "leaf $index comes after leaf $previous")
        previous = index
        result
    }
}

private fun oneCheckpoint(results: List<ParsedResult>): String {
    val notes = results.mapTo(HashSet()) { it.proof.checkpoint }
    return notes.singleOrNull() ?: throw CheckFailed(Check.HISTORY, "its entries rest on several checkpoints")
}

/**
 * Verifies one VRF proof, and checks only that the rest have the same hash. A server can make any number of different
 * proofs for one hash, so to verify each would let it keep a phone busy.
 */
private fun assertHashes(keys: LogKeys, input: ByteArray, results: List<ParsedResult>, vrfHash: String) {
    val first = results.first()
    assertHash(proveHash(keys, input, first.vrfProof), vrfHash, vrfHash)
    val other = results.find { !isOfSameHash(first.vrfProof, it.vrfProof) } ?: return
    throw CheckFailed(Check.VRF, "the VRF proof of leaf ${other.proof.index} is not of the hash that was asked for")
}
