/**
 * The highest checkpoint a client has seen. Holding each new one against it is what makes a rewritten history, a rollback
 * or a second view of the log show.
 *
 * A checkpoint that could not be compared, because tiles were refused or wrong, is kept beside it as pending evidence. It
 * is compared with every later one: once the log has grown past it, the tiles of its own tree decide.
 */
package callsign.verify

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

/** A log's stored state. [pending] are notes that the log signed and that could not be compared yet. */
public data class KeptCheckpoint(val checkpoint: SignedCheckpoint, val pending: List<String> = emptyList())

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

/** One log's pin. Checkpoints are taken one after the other, however many arrive at once. */
internal class CheckpointPin(
    private val keys: LogKeys,
    private val store: CheckpointStore,
    private val fetchTile: FetchTile,
) {
    private val turn = Mutex()

    /** The one that was last found good. */
    @Volatile
    private var verified: SignedCheckpoint? = null

    /**
     * The highest checkpoint. Throws `MALFORMED` when the store gives back something else than was put in, such as a
     * checkpoint that the log did not sign.
     */
    suspend fun highest(): SignedCheckpoint? = read()?.checkpoint

    /**
     * Takes a checkpoint that the log signed once it fits the highest one, and keeps it when it is larger; returns null.
     * [floorSize] is the highest size when the request left: an answer may be overtaken by a later one, but a tree below the
     * floor is a `rollback`. Throws whatever the tiles and the store throw; the pin is then where it was, and the checkpoint
     * is pending.
     */
    suspend fun accept(seen: SignedCheckpoint, floorSize: Long): Refusal? = turn.withLock {
        val pin = read()
        if (pin == null) {
            store.put(KeptCheckpoint(seen))
            return null
        }
        val highest = pin.checkpoint
        val comparison = compareCheckpoints(highest, seen)
        if (comparison is Refusal) return comparison
        if (comparison == SizeComparison.SMALLER && seen.treeSize < floorSize) return rollback(highest, seen)
        compare(pin, seen)?.let { return it }
        val newest = if (comparison == SizeComparison.LARGER) seen else highest
        val asked = askAgain(pin.pending, newest)
        if (asked.caught != null) return asked.caught
        if (newest !== highest || asked.left.size < pin.pending.size) keep(newest, asked.left)
        null
    }

    /** The refusal of a checkpoint that does not fit the pin; it is pending unless tiles decided. */
    private suspend fun compare(pin: KeptCheckpoint, seen: SignedCheckpoint): Refusal? {
        suspend fun keepPending() = withContext(NonCancellable) {
            keep(pin.checkpoint, pin.pending.filter { it != seen.note } + seen.note)
        }
        val outcome = try {
            decide(pin.checkpoint, seen)
        } catch (error: Throwable) {
            keepPending()
            throw error
        }
        if (outcome is Decision.Inconsistent && !outcome.isProven) keepPending()
        return (outcome as? Decision.Inconsistent)?.refusal
    }

    private class Asked(val caught: Refusal?, val left: List<String>)

    /** Compares pending checkpoints with the newest one. Unanswered ones stay. */
    private suspend fun askAgain(pending: List<String>, newest: SignedCheckpoint): Asked {
        val left = mutableListOf<String>()
        for (note in pending) {
            // A note that the log did not sign is no evidence.
            val verdict = verifyCheckpoint(keys, note) as? VerifiedCheckpoint ?: continue
            val outcome = try {
                decide(newest, verdict.checkpoint)
            } catch (cancelled: CancellationException) {
                throw cancelled
            } catch (_: Exception) {
                null
            }
            if (outcome == Decision.Consistent) continue
            if (outcome is Decision.Inconsistent && outcome.isProven) return Asked(outcome.refusal, pending)
            left += note
        }
        return Asked(null, left)
    }

    private sealed interface Decision {
        data object Consistent : Decision

        class Inconsistent(val isProven: Boolean, val refusal: Refusal) : Decision
    }

    /** Whether one of two trees begins with the other. Only tiles that lead to the signed root prove that it does not. */
    private suspend fun decide(known: SignedCheckpoint, seen: SignedCheckpoint): Decision {
        val comparison = compareCheckpoints(known, seen)
        if (comparison is Refusal) return Decision.Inconsistent(true, comparison)
        if (comparison == SizeComparison.SAME) return Decision.Consistent
        val (older, newer) = if (comparison == SizeComparison.LARGER) known to seen else seen to known
        val missing = java.util.concurrent.atomic.AtomicBoolean()
        val watched = FetchTile { tile -> fetchTile.fetch(tile).also { if (it.isEmpty()) missing.set(true) } }
        val found = consistencyFromTiles(watched, older, newer)
        if (found !is TileConsistency.Inconsistent) return Decision.Consistent
        // A log that lacks tiles of a tree that it signed does not show that its history is one.
        val check = if (missing.get()) Check.CONSISTENCY else found.check
        val refusal = Refusal(check, found.detail, Evidence(older.note, newer.note))
        return Decision.Inconsistent(found.check == Check.CONSISTENCY, refusal)
    }

    private suspend fun read(): KeptCheckpoint? {
        val kept = store.get(keys.origin) ?: return null
        if (kept.checkpoint != verified) verified = verify(kept.checkpoint)
        return kept
    }

    /** Anyone who can write to the app's storage could plant a checkpoint: only the signature counts. */
    private fun verify(kept: SignedCheckpoint): SignedCheckpoint =
        when (val verdict = verifyCheckpoint(keys, kept.note)) {
            is VerifiedCheckpoint ->
                verdict.checkpoint.takeIf { it == kept }
                    ?: throw malformed("the checkpoint in the store is not what its note says")
            is Refusal -> throw malformed("the checkpoint in the store is not the log's: ${verdict.detail}")
        }

    private suspend fun keep(highest: SignedCheckpoint, pending: List<String>) {
        store.put(KeptCheckpoint(highest, pending.takeLast(PENDING_MAX)))
    }

    private fun rollback(highest: SignedCheckpoint, seen: SignedCheckpoint): Refusal {
        val detail = "tree size ${seen.treeSize} is below ${highest.treeSize}, which was seen before"
        return Refusal(Check.ROLLBACK, detail, Evidence(highest.note, seen.note))
    }

    private companion object {
        /** Only the log can sign one. When it signs more, the newest are kept: each of them is evidence enough. */
        const val PENDING_MAX = 16
    }
}
