/**
 * The highest checkpoint a client has seen. Holding each new one against it is what makes a rewritten history or a second
 * view of the log show.
 *
 * Caches stand between log and client, so only two signed notes that contradict each other accuse the log:
 *
 * - one size with two roots, or tiles that lead to the newer root and contradict the older one: evidence
 * - tiles that are missing or lead to no signed root prove nothing. The checkpoint is kept as *pending* and compared with every
 *   later one: once the log has grown past it, the tiles of its own tree decide
 * - an answer with a beginning of the highest tree is *stale*
 *
 * Nothing of a pending or stale answer is used. Where that lasts longer than `maxAgeMs`, it is refused.
 */
package callsign.verify

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

/**
 * A log's stored state. [pending] are notes that the log signed and that could not be compared yet. [openSinceMs] is set while
 * there are any, or the log's answers are stale: the time of the first, POSIX milliseconds.
 */
public data class KeptCheckpoint(
    val checkpoint: SignedCheckpoint,
    val pending: List<String> = emptyList(),
    val openSinceMs: Long? = null,
)

/**
 * Where an app keeps the highest checkpoint of each log: in what survives a restart, and per installation. `put` returns
 * once it would survive one; [FileCheckpointStore] does.
 */
public interface CheckpointStore {
    public suspend fun get(origin: String): KeptCheckpoint?

    public suspend fun put(kept: KeptCheckpoint)
}

/** A store that forgets with the process: until then rollbacks and forks show, after it they do not. */
public class MemoryCheckpointStore : CheckpointStore {
    private val kept = java.util.concurrent.ConcurrentHashMap<String, KeptCheckpoint>()

    override suspend fun get(origin: String): KeptCheckpoint? = kept[origin]

    override suspend fun put(kept: KeptCheckpoint) {
        this.kept[kept.checkpoint.origin] = kept
    }
}

/** What became of a checkpoint at the pin. */
internal sealed interface Acceptance {
    data object Accepted : Acceptance

    class Refused(val refusal: Refusal) : Acceptance

    class Open(val unanswered: Unanswered) : Acceptance
}

/**
 * One log's pin. Checkpoints are taken one after the other, however many arrive at once. It asks [sources] in turn until the
 * tiles of one decide. [mayBegin]: the log may be begun anew with another key under its name, so a kept checkpoint that none of
 * the present keys has signed counts as none.
 */
internal class CheckpointPin(
    private val keys: LogKeys,
    private val store: CheckpointStore,
    private val sources: List<FetchTile>,
    maxAgeMs: Long?,
    private val mayBegin: Boolean = false,
) {
    private val turn = Mutex()
    private val openMsMax = maxAgeMs ?: OPEN_MS_MAX

    /** The one that was last found good. */
    @Volatile
    private var verified: SignedCheckpoint? = null

    /** The two notes that were last found consistent: each result of an answer carries the same one. */
    private var consistent: Evidence? = null

    /**
     * The highest checkpoint. Throws `MALFORMED` when the store gives back something else than was put in, such as a
     * checkpoint that the log did not sign.
     */
    suspend fun highest(): SignedCheckpoint? = read()?.checkpoint

    /** Whether a checkpoint is kept, be it one that counts as none. Throws as [highest]. */
    suspend fun hasSeen(): Boolean = read() != null || store.get(keys.origin) != null

    /**
     * Takes a checkpoint that the log signed once it fits the highest one, and keeps it when it is larger. [floorSize] is
     * given for an answer of the log: the highest size when the request left. A later answer may overtake it, but a tree
     * below the floor is stale. Throws whatever the store throws.
     */
    suspend fun accept(seen: SignedCheckpoint, nowMs: Long, floorSize: Long? = null): Acceptance = turn.withLock {
        val pin = read()
        if (pin == null) {
            store.put(KeptCheckpoint(seen))
            return Acceptance.Accepted
        }
        val highest = pin.checkpoint
        val withSeen = if (seen.note in pin.pending) pin else pin.copy(pending = pin.pending + seen.note)
        val found = try {
            compare(highest, seen)
        } catch (cancelled: CancellationException) {
            withContext(NonCancellable) { keep(withSeen.copy(openSinceMs = sinceOf(pin, nowMs))) }
            throw cancelled
        }
        if (found is Acceptance.Refused) return found
        if (found is Acceptance.Open) return leaveOpen(withSeen, found, nowMs)
        if (floorSize != null && seen.treeSize < floorSize) return leaveOpen(pin, stale(highest, seen), nowMs)
        val newest = if (seen.treeSize > highest.treeSize) seen else highest
        val asked = askAgain(pin.pending, newest)
        if (asked.refused != null) return asked.refused
        val next = pin.copy(checkpoint = newest, pending = asked.left)
        if (asked.open != null) {
            return leaveOpen(next, asked.open, nowMs) as? Acceptance.Refused ?: Acceptance.Accepted
        }
        // Another person's note says nothing of how late the log's answers are.
        val kept = if (floorSize == null) next else next.copy(openSinceMs = null)
        if (kept != pin) keep(kept)
        Acceptance.Accepted
    }

    /** Keeps since when something is open: the answer, until that has lasted too long. */
    private suspend fun leaveOpen(pin: KeptCheckpoint, open: Acceptance.Open, nowMs: Long): Acceptance {
        val openSinceMs = sinceOf(pin, nowMs)
        val (detail, _, _, check) = open.unanswered
        if (check == Check.TILES || openSinceMs != pin.openSinceMs) keep(pin.copy(openSinceMs = openSinceMs))
        if (nowMs - openSinceMs <= openMsMax) return open
        val seconds = (nowMs - openSinceMs) / 1_000
        return Acceptance.Refused(Refusal(check ?: Check.TILES, "$detail, and no better answer has come for $seconds s"))
    }

    /** A clock that was ahead must not put the refusal off. */
    private fun sinceOf(pin: KeptCheckpoint, nowMs: Long): Long = minOf(pin.openSinceMs ?: nowMs, nowMs)

    /** [open] says why the last of those that are [left] is. */
    private class Asked(val left: List<String>, val refused: Acceptance.Refused? = null, val open: Acceptance.Open? = null)

    /** Compares pending checkpoints with the newest one. Those that still could not be are left. */
    private suspend fun askAgain(pending: List<String>, newest: SignedCheckpoint): Asked {
        val left = mutableListOf<String>()
        var open: Acceptance.Open? = null
        for (note in pending) {
            // A note that the log did not sign is no evidence.
            val verdict = verifyCheckpoint(keys, note) as? VerifiedCheckpoint ?: continue
            when (val found = compare(newest, verdict.checkpoint)) {
                Acceptance.Accepted -> continue
                is Acceptance.Refused -> return Asked(pending, refused = found)
                is Acceptance.Open -> open = found
            }
            left += note
        }
        return Asked(left, open = open)
    }

    /** Whether one of two trees begins with the other. Only tiles that lead to the signed root prove that it does not. */
    private suspend fun compare(known: SignedCheckpoint, seen: SignedCheckpoint): Acceptance {
        val comparison = compareCheckpoints(known, seen)
        if (comparison is Refusal) return Acceptance.Refused(comparison)
        val pair = Evidence(known.note, seen.note)
        if (comparison == SizeComparison.SAME || consistent == pair) return Acceptance.Accepted
        val (older, newer) = if (comparison == SizeComparison.LARGER) known to seen else seen to known
        var unanswered: String? = null
        for (source in sources) {
            val found = try {
                consistencyFromTiles(source, older, newer)
            } catch (error: NoAnswer) {
                TileConsistency.Inconsistent(Check.TILES, error.message.orEmpty())
            }
            if (found !is TileConsistency.Inconsistent) {
                consistent = pair
                return Acceptance.Accepted
            }
            if (found.check == Check.CONSISTENCY)
                return Acceptance.Refused(Refusal(found.check, found.detail, Evidence(older.note, newer.note)))
            if (unanswered == null) unanswered = found.detail
        }
        return Acceptance.Open(Unanswered(unanswered.orEmpty(), check = Check.TILES))
    }

    private suspend fun read(): KeptCheckpoint? {
        val kept = store.get(keys.origin) ?: return null
        if (mayBegin && isOfOtherKeys(kept.checkpoint)) return null
        if (kept.checkpoint != verified) verified = verify(kept.checkpoint)
        return kept
    }

    /** A signature that names one of the present keys has to hold. */
    private fun isOfOtherKeys(kept: SignedCheckpoint): Boolean {
        if (kept.note == verified?.note) return false
        return readNote(kept.note).signatures.none { line ->
            keys.verifiers.any { it.name == line.name && it.keyId == line.keyId }
        }
    }

    /** Anyone who can write to the app's storage could plant a checkpoint: only the signature counts. */
    private fun verify(kept: SignedCheckpoint): SignedCheckpoint =
        when (val verdict = verifyCheckpoint(keys, kept.note)) {
            is VerifiedCheckpoint ->
                verdict.checkpoint.takeIf { it == kept }
                    ?: throw malformed("the checkpoint in the store is not what its note says")
            is Refusal -> throw malformed("the checkpoint in the store is not the log's: ${verdict.detail}")
        }

    private suspend fun keep(pin: KeptCheckpoint) {
        store.put(pin.copy(pending = pin.pending.take(PENDING_MAX)))
    }

    private fun stale(highest: SignedCheckpoint, seen: SignedCheckpoint): Acceptance.Open {
        val detail = "tree size ${seen.treeSize} is the beginning of ${highest.treeSize}, which was seen before"
        return Acceptance.Open(Unanswered(detail, check = Check.STALE))
    }

    private companion object {
        /** Only the log can sign one. When it signs more, the first are kept: later ones can't push a contradiction out. */
        const val PENDING_MAX = 16
        const val OPEN_MS_MAX = 24 * 3_600_000L
    }
}
