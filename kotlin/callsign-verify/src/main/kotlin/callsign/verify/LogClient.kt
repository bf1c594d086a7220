/**
 * Everything an app does with its key transparency log: look keys up, watch its own, and compare answers with earlier ones,
 * its own and other clients'.
 */
package callsign.verify

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject

/**
 * A device to look up. [vrfHash] is base64 of 64 octets; [publicKey], base64, is the key the app holds for the device, when
 * it has one.
 */
public data class DeviceToLookUp(
    val userId: ULong,
    val deviceId: ULong,
    val vrfHash: String,
    val publicKey: String? = null,
)

/** This device, and every key it has made, base64: oldest first, the last one in use. */
public data class OwnDevice(
    val userId: ULong,
    val deviceId: ULong,
    val vrfHash: String,
    val publicKeys: List<String>,
)

/** What became of a check of own keys: [OwnKeysReport], [Refusal] or [Unanswered]. */
public sealed interface OwnKeysOutcome

/**
 * The keys logged in the device's name; [checkpoint] is null when the server denies that there are any. [complete] says
 * whether the index proves that there are no more, and [isProved] whether cosigners that rebuild it vouch for that.
 */
public data class OwnKeysReport(
    val ownKeys: OwnKeys,
    val entries: List<LoggedKey>,
    val checkpoint: SignedCheckpoint? = null,
    val complete: Completeness.Kind = Completeness.Kind.UNINDEXED,
    val isProved: Boolean = false,
) : OwnKeysOutcome

/** The operations of [LogClient] that [ContactDevices] needs. */
public interface KeyLookups {
    public suspend fun lookUpAll(devices: List<DeviceToLookUp>): List<LookupOutcome>

    public suspend fun checkOwnKeys(device: OwnDevice): OwnKeysOutcome

    public suspend fun verifyAbsence(userId: ULong, deviceId: ULong, absent: AbsentList?): AbsenceOutcome
}

/**
 * One log as one installation of an app sees it. It believes only answers that verify under [keys]; safe to share between
 * threads.
 *
 * @param url the log's prefix, `https://kt.example.org`. Its server is trusted with nothing.
 * @param store where the highest checkpoint is kept: see [FileCheckpointStore].
 * @param transport the platform's HTTP client unless given.
 * @param timeoutMs how long one request with its answer may take.
 * @param maxAgeMs how long ago the witnesses of the policy may have seen a checkpoint that the log answers with; unless
 *   given, any time. Also how long a checkpoint may stay uncompared or stale; unless given, a day.
 * @param nowMs the clock, POSIX time in milliseconds.
 * @param mirror the prefix of a copy of the log's tiles, asked where the log's own are missing or wrong. Trusted with nothing
 *   either.
 * @param completeness whether answers have to prove by the log's index that they are complete; unless given, `DEMAND` where the
 *   policy names the index, and else `WHEN_OFFERED`. [store] keeps a checkpoint of the index, too, under an origin of its own.
 * @param maxIndexAgeMs how long ago the quorum may have seen the newest leaf of the index; unless given, a day.
 * @throws LogException `KEY_INVALID` for [maxAgeMs] without witnesses: a checkpoint has no time of its own.
 */
public class LogClient(
    private val keys: LogKeys,
    url: String,
    store: CheckpointStore,
    transport: LogTransport = HttpUrlTransport(),
    timeoutMs: Long = 20_000,
    private val maxAgeMs: Long? = null,
    private val nowMs: () -> Long = System::currentTimeMillis,
    mirror: String? = null,
    completeness: CompletenessDemand? = null,
    maxIndexAgeMs: Long? = null,
) : KeyLookups {
    private val prefixes = listOfNotNull(url, mirror)
    private val sources = prefixes.map { LogRequests(it, transport, timeoutMs) }
    private val requests = sources.first()
    private val pin = CheckpointPin(keys, store, tilesOf(sources), maxAgeMs)

    /** Null where the app does not know the index's key. */
    private val index = keys.index?.let { index ->
        val demand = completeness ?: if (index.isDemanded) CompletenessDemand.DEMAND else CompletenessDemand.WHEN_OFFERED
        val tiles = tilesOf(prefixes.map { LogRequests("${it.trimEnd('/')}/index", transport, timeoutMs) })
        val indexPin = CheckpointPin(index.log, store, tiles, maxAgeMs, mayBegin = true)
        val tails = IndexTails(tilesOf(sources).zip(entriesOf(sources), ::TailSource))
        IndexCheck(keys, index, demand, maxIndexAgeMs ?: INDEX_AGE_MS_MAX, nowMs, pin, indexPin, tails)
    }

    init {
        if (maxAgeMs != null && keys.quorum == null)
            throw keyInvalid("maxAgeMs needs a policy with a quorum of witnesses")
    }

    /** The newest key that the log holds for a device. Throws what the store throws. */
    public suspend fun lookUp(device: DeviceToLookUp): LookupOutcome = lookUpAll(listOf(device)).single()

    /** As [lookUp] for many devices, 64 in a request; the outcomes in their order. */
    override suspend fun lookUpAll(devices: List<DeviceToLookUp>): List<LookupOutcome> =
        devices.chunked(LOOKUP_TARGETS_MAX).flatMap { lookUpTogether(it) }

    /**
     * Asks for every key that was ever logged in this device's name and holds them against its own: to be called at each
     * start of the app, and from time to time. A history that lacks what a lookup shows is refused at `history`.
     */
    override suspend fun checkOwnKeys(device: OwnDevice): OwnKeysOutcome {
        val newest = when (val found = lookUp(DeviceToLookUp(device.userId, device.deviceId, device.vrfHash))) {
            is VerifiedKey -> found
            is Refusal -> return found
            is Unanswered ->
                return if (isDenial(found)) OwnKeysReport(compareOwnKeys(emptyList(), device.publicKeys), emptyList()) else found
        }
        return when (val history = keyHistory(device)) {
            is Fitting.Held -> compared(device, newest, history.value)
            is Fitting.Refused -> history.refusal
            is Fitting.Open ->
                if (isDenial(history.unanswered)) incomplete(newest.index, "the answer that there is no history")
                else history.unanswered
        }
    }

    /** Fetches the current checkpoint and holds it against the highest one seen. */
    public suspend fun refreshCheckpoint(): CheckpointOutcome {
        val floorSize = pinnedSize()
        val note = try {
            requests.checkpoint()
        } catch (error: NoAnswer) {
            return error.toUnanswered()
        }
        return when (val verdict = verifyCheckpoint(keys, note)) {
            is VerifiedCheckpoint -> fitting(verdict, floorSize).asCheckpoint()
            is Refusal -> verdict
        }
    }

    /**
     * Holds a note that someone else was given by this log, or of its index, against the highest one seen here. When the log
     * signed both and they do not fit, it shows different trees to different people, and `evidence` proves it.
     */
    public suspend fun compareWith(note: String): CheckpointOutcome {
        if (index != null && note.startsWith("${indexOriginOf(keys.origin)}\n")) return index.compareWith(note)
        return when (val verdict = verifyCheckpoint(keys, note)) {
            is VerifiedCheckpoint -> compared(verdict).asCheckpoint()
            is Refusal -> verdict
        }
    }

    /** The highest checkpoint seen: give its note to other clients for [compareWith]. */
    public suspend fun highestCheckpoint(): SignedCheckpoint? = pin.highest()

    /** The highest checkpoint of the index, for the same. */
    public suspend fun highestIndexCheckpoint(): SignedCheckpoint? = index?.highestCheckpoint()

    /**
     * Whether nothing is in the log for a user and device, as their server says it proves with [absent]. Refused at
     * `completeness` where the app demands that proof and there is none.
     */
    override suspend fun verifyAbsence(userId: ULong, deviceId: ULong, absent: AbsentList?): AbsenceOutcome =
        index?.absent(userId, deviceId, absent) ?: Absence(Completeness.Unindexed)

    private suspend fun lookUpTogether(devices: List<DeviceToLookUp>): List<LookupOutcome> {
        val floorSize = pinnedSize()
        val targets = devices.map { JsonObject(mapOf("publicKeyHash" to JsonPrimitive(it.vrfHash))) }
        val asked = buildJsonObject {
            put("targets", JsonArray(targets))
            if (index?.isAsked == true) put("index", JsonPrimitive(true))
        }
        val answer = try {
            requests.post("api/get-public-keys", asked)
        } catch (error: NoAnswer) {
            return devices.map { error.toUnanswered() }
        }
        val results = (answer as? JsonObject)?.get("results") as? JsonArray
        if (results == null || results.size != devices.size) {
            val detail = "the answer does not have one result for each of ${devices.size} devices"
            return devices.map { Refusal(Check.PROOF, detail) }
        }
        return devices.zip(results) { device, result -> judged(device, result, floorSize) }
    }

    private suspend fun judged(device: DeviceToLookUp, result: JsonElement, floorSize: Long): LookupOutcome {
        val claim = LookupClaim(device.userId, device.deviceId, device.vrfHash, device.publicKey)
        val outcome = when (val verdict = verifyLookup(keys, claim, result)) {
            is VerifiedKey -> fitting(verdict, floorSize).asLookup()
            is Refusal -> verdict
        }
        if (outcome !is VerifiedKey || index?.isAsked != true) return outcome
        return index.complete(outcome, (result as JsonObject)["indexProof"])
    }

    private suspend fun keyHistory(device: OwnDevice): Fitting<VerifiedHistory> {
        val floorSize = pinnedSize()
        val answer = try {
            requests.post("api/get-key-history", JsonObject(mapOf("publicKeyHash" to JsonPrimitive(device.vrfHash))))
        } catch (error: NoAnswer) {
            return Fitting.Open(error.toUnanswered())
        }
        val claim = HistoryClaim(device.userId, device.deviceId, device.vrfHash)
        return when (val verdict = verifyKeyHistory(keys, claim, answer)) {
            is VerifiedHistory -> fitting(verdict, floorSize)
            is Refusal -> Fitting.Refused(verdict)
        }
    }

    private fun compared(device: OwnDevice, newest: VerifiedKey, history: VerifiedHistory): OwnKeysOutcome {
        val entries = history.entries
        val complete = newest.completeness as? Completeness.Complete
        val shown = complete?.indexes ?: listOf(newest.index)
        val leftOut = shown.find { index -> entries.none { it.index == index } }
        if (leftOut != null) return incomplete(leftOut, "the history at tree size ${history.checkpoint.treeSize}")
        val ownKeys = compareOwnKeys(entries, device.publicKeys, LoggedKey(newest.index, newest.publicKey))
        val proved = listOf(newest.completeness)
        return OwnKeysReport(ownKeys, entries, history.checkpoint, leastOf(proved), areProved(proved))
    }

    private suspend fun pinnedSize(): Long = pin.highest()?.treeSize ?: 0

    private fun Fitting<VerifiedKey>.asLookup(): LookupOutcome = when (this) {
        is Fitting.Held -> value
        is Fitting.Refused -> refusal
        is Fitting.Open -> unanswered
    }

    private fun Fitting<VerifiedCheckpoint>.asCheckpoint(): CheckpointOutcome = when (this) {
        is Fitting.Held -> value
        is Fitting.Refused -> refusal
        is Fitting.Open -> unanswered
    }

    /** Holds once witnesses have seen its checkpoint and it fits the earlier ones. */
    private suspend fun <Verified : Checkpointed> fitting(verdict: Verified, floorSize: Long): Fitting<Verified> =
        when (val witnessed = verifyWitnesses(keys, verdict.checkpoint.note, nowMs(), maxAgeMs)) {
            is Refusal -> Fitting.Refused(witnessed)
            is Witnessed -> compared(verdict, floorSize)
        }

    private suspend fun <Verified : Checkpointed> compared(verdict: Verified, floorSize: Long? = null): Fitting<Verified> =
        when (val outcome = pin.accept(verdict.checkpoint, nowMs(), floorSize)) {
            Acceptance.Accepted -> Fitting.Held(verdict)
            is Acceptance.Refused -> Fitting.Refused(outcome.refusal)
            is Acceptance.Open -> Fitting.Open(outcome.unanswered)
        }

    /** Whether the server says that nothing is logged under the hash. */
    private fun isDenial(unanswered: Unanswered): Boolean = unanswered.code == "UNKNOWN_PUBLIC_KEY_HASH"

    private fun incomplete(index: Long, history: String): Refusal =
        Refusal(Check.HISTORY, "$history leaves out leaf $index, which a lookup shows")

    private companion object {
        const val LOOKUP_TARGETS_MAX = 64

        /** Leaves come every quarter of an hour, and a clock may be wrong. */
        const val INDEX_AGE_MS_MAX = 24 * 3_600_000L
    }
}

/**
 * Ways to read tiles: each begins with another source, and falls back where it lacks a tile. Tiles prove nothing one by one, so
 * one way after the other is tried against the signed root.
 */
private fun tilesOf(sources: List<LogRequests>): List<FetchTile> =
    sources.map { first -> FetchTile { tile -> fromAny(sources, first) { it.tile(tile) } } }

private fun entriesOf(sources: List<LogRequests>): List<FetchEntries> =
    sources.map { first -> FetchEntries { bundle -> fromAny(sources, first) { it.entries(bundle) } } }

private suspend fun <Part> fromAny(
    sources: List<LogRequests>,
    first: LogRequests,
    ask: suspend (LogRequests) -> Part,
): Part {
    val others = sources.filter { it !== first }
    return others.fold(suspend { ask(first) }) { tried, other ->
        suspend {
            try {
                tried()
            } catch (_: NoAnswer) {
                ask(other)
            }
        }
    }()
}
