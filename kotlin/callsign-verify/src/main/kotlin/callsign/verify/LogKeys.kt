package callsign.verify

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
) {
    /** The origin of the log: the first line of its checkpoints. */
    public val origin: String get() = verifiers.first().name

    /** Each result of an answer carries the same note, so the last one that held is remembered. */
    @Volatile
    internal var lastOpened: SignedCheckpoint? = null

    @Volatile
    internal var lastWitnessed: WitnessedNote? = null

    internal val provenHashes = ProvenHashes()

    public companion object {
        /**
         * A log without witnesses. [vkey] is its verifier key, `name+keyid+base64`; [vrfPublicKey] is base64 of the
         * 32-octet VRF key. Throws `KEY_INVALID` for a key that is not of its form, also for a VRF key under which anyone
         * can make proofs.
         */
        public fun ofVerifierKey(vkey: String, vrfPublicKey: String): LogKeys {
            val vrfKey = parseVrfPublicKey(vrfPublicKey)
            val verifier = parseVerifierKey(vkey)
            return LogKeys(vkey.split('+').take(2).joinToString("+"), listOf(verifier), vrfKey, null)
        }

        /**
         * A log with witnesses. [policy] is the text of a policy (c2sp.org/tlog-policy). It names one log; several times,
         * with one origin, while the log changes its key. Throws as [ofVerifierKey], and `MALFORMED` for a policy that is
         * not one, or has no log or several.
         */
        public fun ofPolicy(policy: String, vrfPublicKey: String): LogKeys {
            val vrfKey = parseVrfPublicKey(vrfPublicKey)
            val read = parsePolicy(policy)
            val origins = read.logs.distinctBy(VerifierKey::name).size
            if (origins != 1) throw malformed("policy has $origins logs, not one")
            return LogKeys(read.logs.first().name, read.logs, vrfKey, read.quorum)
        }
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
