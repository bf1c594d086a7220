package callsign.app

/**
 * The keys of one call by epoch, in memory and nowhere else. The last two are kept: frames of the one before may still be on
 * their way when a new one comes.
 */
internal class EpochKeys(private val callId: String) {
    /** Newest first. */
    @Volatile
    var all: List<EpochKey> = emptyList()
        private set

    val newest: EpochKey? get() = all.firstOrNull()

    /** Keeps a key; gives it if it is the newest now and was not before. */
    fun hold(epoch: Long, key: ByteArray): EpochKey? {
        val before = newest
        val held = EpochKey(epoch, key, fingerprintOf(key, callId, epoch))
        all = (listOf(held) + all.filter { it.epoch != epoch }).sortedByDescending { it.epoch }.take(KEPT_MAX)
        return newest?.takeIf { it.fingerprint != before?.fingerprint }
    }

    /** Overwrites and forgets all keys. */
    fun wipe() {
        for (held in all) held.key.fill(0)
        all = emptyList()
    }

    private companion object {
        const val KEPT_MAX = 2
    }
}
