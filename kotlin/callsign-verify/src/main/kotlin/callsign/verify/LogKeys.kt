package callsign.verify

/**
 * The index of a log. [log] has the keys of its output log, and the quorum whose cosignatures an output checkpoint needs.
 * [isRebuilt]: those are of cosigners that rebuild the index. [isDemanded]: answers have to prove that they are complete, unless
 * the app says otherwise.
 */
internal class IndexKeys(val log: LogKeys, val isRebuilt: Boolean, val isDemanded: Boolean)

/**
 * The keys that an app knows its log by. They come with the app and never from the log's own server. Made by
 * [ofVerifierKey] or [ofPolicy]; safe to share between threads.
 */
public class LogKeys private constructor(
    /**
     * Names what an app remembers of the log: its origin, with the key's id where no policy lets the log change its key. A
     * development server that starts anew has another log of the same origin.
     */
    public val name: String,
    /** A checkpoint is signed by one of them; all have one name, the origin. */
    internal val verifiers: List<VerifierKey>,
    internal val vrfPublicKey: ByteArray,
    /** Whose cosignatures a checkpoint needs, if any. */
    internal val quorum: QuorumMember?,
    /** Null where the app knows no index of the log. */
    internal val index: IndexKeys? = null,
) {
    /** The origin of the log: the first line of its checkpoints. */
    public val origin: String get() = verifiers.first().name

    /** Each result of an answer carries the same notes, so the last ones that held are remembered. */
    internal val lastOpened = Remembered<SignedCheckpoint>()

    @Volatile
    internal var lastWitnessed: WitnessedNote? = null

    internal val provenHashes = ProvenHashes()

    public companion object {
        /**
         * A log without witnesses. [vkey] is its verifier key, `name+keyid+base64`; [vrfPublicKey] is base64 of the
         * 32-octet VRF key. Throws `KEY_INVALID` for a key that is not of its form, also for a VRF key under which anyone
         * can make proofs. [indexVkey] is the verifier key of the log's index, where the app knows it.
         */
        public fun ofVerifierKey(vkey: String, vrfPublicKey: String, indexVkey: String? = null): LogKeys {
            val vrfKey = parseVrfPublicKey(vrfPublicKey)
            val verifier = parseVerifierKey(vkey)
            val index = indexVkey?.let { IndexKeys(indexLog(verifier, listOf(parseVerifierKey(it)), vrfKey, null), false, false) }
            return LogKeys(vkey.split('+').take(2).joinToString("+"), listOf(verifier), vrfKey, null, index)
        }

        /**
         * A log with witnesses. [policy] is the text of a policy (c2sp.org/tlog-policy). It names one log; several times,
         * with one origin, while the log changes its key. A line of the origin `<origin>/index` names the log's index, which
         * answers then have to prove that they are complete by. A member `rebuilders` names the cosigners that rebuild the index
         * before they cosign. Throws as [ofVerifierKey], and `MALFORMED` for a policy that is not one, or has no log or several.
         */
        public fun ofPolicy(policy: String, vrfPublicKey: String): LogKeys {
            val vrfKey = parseVrfPublicKey(vrfPublicKey)
            val read = parsePolicy(policy)
            val indexOrigins = read.logs.map { indexOriginOf(it.name) }
            val (ofIndex, verifiers) = read.logs.partition { it.name in indexOrigins }
            val origins = verifiers.distinctBy(VerifierKey::name).size
            if (origins != 1) throw malformed("policy has $origins logs, not one")
            val rebuilders = read.rebuilders
            val index =
                if (ofIndex.isEmpty()) null
                else IndexKeys(indexLog(verifiers.first(), ofIndex, vrfKey, rebuilders ?: read.quorum), rebuilders != null, true)
            return LogKeys(verifiers.first().name, verifiers, vrfKey, read.quorum, index)
        }

        private fun indexLog(
            log: VerifierKey,
            verifiers: List<VerifierKey>,
            vrfKey: ByteArray,
            quorum: QuorumMember?,
        ): LogKeys {
            val expected = indexOriginOf(log.name)
            val other = verifiers.find { it.name != expected }
            if (other != null) throw keyInvalid("the key of the index is of ${other.name}, not of $expected")
            return LogKeys(expected, verifiers, vrfKey, quorum)
        }
    }
}

/** The last few of something, the newest first. */
internal class Remembered<Value> {
    @Volatile
    private var values: List<Value> = emptyList()

    fun find(isWanted: (Value) -> Boolean): Value? = values.find(isWanted)

    /** If two threads keep at once, one value may be forgotten. */
    fun keep(value: Value) {
        values = listOf(value) + values.take(REMEMBERED_MAX - 1)
    }

    private companion object {
        const val REMEMBERED_MAX = 4
    }
}

/**
 * Hashes that were proven, by input and proof: a proof is the larger part of a lookup's work, and an app looks the same
 * devices up for each call.
 */
internal class ProvenHashes {
    private val hashes = HashMap<String, String>()

    @Synchronized
    fun find(name: String): String? = hashes[name]

    @Synchronized
    fun keep(name: String, hash: String) {
        if (hashes.size >= PROVEN_MAX) hashes.clear()
        hashes[name] = hash
    }

    private companion object {
        const val PROVEN_MAX = 500
    }
}
