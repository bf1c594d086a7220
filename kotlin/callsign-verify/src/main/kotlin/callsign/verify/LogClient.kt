/**
 * Everything an app does with its key transparency log: look keys up, watch its own, and compare answers with earlier ones,
 * its own and other clients'.
 */
package callsign.verify

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

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

/** The keys logged in the device's name; [checkpoint] is null when the server denies that there are any. */
public data class OwnKeysReport(
    val ownKeys: OwnKeys,
    val entries: List<LoggedKey>,
    val checkpoint: SignedCheckpoint? = null,
) : OwnKeysOutcome

/** The operations of [LogClient] that [ContactDevices] needs. */
public interface KeyLookups {
    public suspend fun lookUpAll(devices: List<DeviceToLookUp>): List<LookupOutcome>

    public suspend fun checkOwnKeys(device: OwnDevice): OwnKeysOutcome
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
) : KeyLookups {
    private val requests = LogRequests(url, transport, timeoutMs)
    private val pin =
        CheckpointPin(keys, store, tileSources(requests, mirror?.let { LogRequests(it, transport, timeoutMs) }), maxAgeMs)

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
            is Fitting.Held -> compared(device, newest, history.verdict)
            is Fitting.Refused -> history.refusal
            is Fitting.Open ->
                if (isDenial(history.unanswered)) incomplete(newest, "the answer that there is no history")
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
     * Holds a note that someone else was given by this log against the highest one seen here. When the log signed both and
     * they do not fit, it shows different trees to different people, and `evidence` proves it.
     */
    public suspend fun compareWith(note: String): CheckpointOutcome =
        when (val verdict = verifyCheckpoint(keys, note)) {
            is VerifiedCheckpoint -> compared(verdict).asCheckpoint()
            is Refusal -> verdict
        }

    /** The highest checkpoint seen: give its note to other clients for [compareWith]. */
    public suspend fun highestCheckpoint(): SignedCheckpoint? = pin.highest()

    private suspend fun lookUpTogether(devices: List<DeviceToLookUp>): List<LookupOutcome> {
        val floorSize = pinnedSize()
        val targets = devices.map { JsonObject(mapOf("publicKeyHash" to JsonPrimitive(it.vrfHash))) }
        val answer = try {
            requests.post("api/get-public-keys", JsonObject(mapOf("targets" to JsonArray(targets))))
        } catch (error: NoAnswer) {
            return devices.map { error.toUnanswered() }
        }
        val results = (answer as? JsonObject)?.get("results") as? JsonArray
        if (results == null || results.size != devices.size) {
            val detail = "the answer does not have one result for each of ${devices.size} devices"
            return devices.map { Refusal(Check.PROOF, detail) }
        }
        return devices.zip(results) { device, result ->
            val claim = LookupClaim(device.userId, device.deviceId, device.vrfHash, device.publicKey)
            when (val verdict = verifyLookup(keys, claim, result)) {
                is VerifiedKey -> fitting(verdict, floorSize).asLookup()
                is Refusal -> verdict
            }
        }
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
        if (entries.none { it.index == newest.index })
            return incomplete(newest, "the history at tree size ${history.checkpoint.treeSize}")
        val ownKeys = compareOwnKeys(entries, device.publicKeys, LoggedKey(newest.index, newest.publicKey))
        return OwnKeysReport(ownKeys, entries, history.checkpoint)
    }

    private suspend fun pinnedSize(): Long = pin.highest()?.treeSize ?: 0

    /** An answer that verified by itself, beside what witnesses and earlier checkpoints say. */
    private sealed interface Fitting<out Verified> {
        class Held<Verified>(val verdict: Verified) : Fitting<Verified>

        class Refused(val refusal: Refusal) : Fitting<Nothing>

        class Open(val unanswered: Unanswered) : Fitting<Nothing>
    }

    private fun Fitting<VerifiedKey>.asLookup(): LookupOutcome = when (this) {
        is Fitting.Held -> verdict
        is Fitting.Refused -> refusal
        is Fitting.Open -> unanswered
    }

    private fun Fitting<VerifiedCheckpoint>.asCheckpoint(): CheckpointOutcome = when (this) {
        is Fitting.Held -> verdict
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

    private fun incomplete(newest: VerifiedKey, history: String): Refusal =
        Refusal(Check.HISTORY, "$history leaves out leaf ${newest.index}, which a lookup shows")

    private companion object {
        const val LOOKUP_TARGETS_MAX = 64
    }
}

/**
 * Ways to read tiles: each begins with another source, and falls back where it lacks a tile. Tiles prove nothing one by one, so
 * one way after the other is tried against the signed root.
 */
private fun tileSources(log: LogRequests, mirror: LogRequests?): List<FetchTile> {
    if (mirror == null) return listOf(FetchTile(log::tile))
    return listOf(log to mirror, mirror to log).map { (first, other) ->
        FetchTile { tile ->
            try {
                first.tile(tile)
            } catch (_: NoAnswer) {
                other.tile(tile)
            }
        }
    }
}
