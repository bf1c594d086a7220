/**
 * Policies (c2sp.org/tlog-policy): a text file that names a log and the witnesses whose cosignatures an app asks for.
 * Comments stand on lines of their own, and no key stands there twice.
 */
package callsign.verify

/** A witness or a group, by the name that the policy gives it. */
internal sealed interface QuorumMember {
    val name: String
}

/** [name] is the policy's; cosignatures carry the name of [key]. */
internal class Witness(override val name: String, val key: VerifierKey) : QuorumMember

/** [threshold] of the members have to agree. */
internal class WitnessGroup(
    override val name: String,
    val threshold: Int,
    val members: List<QuorumMember>,
) : QuorumMember

/**
 * [quorum] is null where the policy asks for none. [rebuilders] is the member of that name, if any: the
 * witnesses that rebuild an index before they cosign its checkpoint. The name is our own convention.
 */
internal class WitnessPolicy(
    val logs: List<VerifierKey>,
    val witnesses: List<Witness>,
    val quorum: QuorumMember?,
    val rebuilders: QuorumMember?,
)

/** Reads a policy. Throws `MALFORMED`, with the number of the line, for what the specification does not allow. */
internal fun parsePolicy(text: String): WitnessPolicy {
    if (text.length > POLICY_LENGTH_MAX) throw malformed("policy is too long")
    val reader = PolicyReader()
    text.split('\n').forEachIndexed { at, line ->
        val words = line.split(' ', '\t').filter(String::isNotEmpty)
        if (words.isEmpty() || words.first().startsWith('#')) return@forEachIndexed
        try {
            reader.read(words.first(), words.drop(1))
        } catch (cause: LogException) {
            throw LogException(LogErrorCode.MALFORMED, "policy, line ${at + 1}: ${cause.message}", cause)
        }
    }
    return reader.policy()
}

/**
 * The newest time at which the quorum had cosigned, by the time of each witness's cosignature: as old as its member that
 * counts last. Null without a quorum.
 */
internal fun quorumSeconds(quorum: QuorumMember, secondsOf: (Witness) -> Long?): Long? = when (quorum) {
    is Witness -> secondsOf(quorum)
    is WitnessGroup ->
        quorum.members
            .mapNotNull { quorumSeconds(it, secondsOf) }
            .sortedDescending()
            .getOrNull(quorum.threshold - 1)
}

private class PolicyReader {
    private val logs = mutableListOf<VerifierKey>()
    private val witnesses = mutableListOf<Witness>()
    private val members = mutableMapOf<String, QuorumMember>()
    private val taken = mutableSetOf<String>()
    private val keys = mutableSetOf<List<Byte>>()
    private var quorumLine: QuorumLine? = null

    private class QuorumLine(val member: QuorumMember?)

    fun policy(): WitnessPolicy {
        val quorum = quorumLine ?: throw malformed("policy has no quorum line")
        return WitnessPolicy(logs, witnesses, quorum.member, members[REBUILDERS])
    }

    fun read(keyword: String, words: List<String>) = when (keyword) {
        "log" -> readLog(words)
        "witness" -> readWitness(words)
        "group" -> readGroup(words)
        "quorum" -> readQuorum(words)
        else -> throw malformed("starts with none of log, witness, group and quorum")
    }

    private fun readLog(words: List<String>) {
        if (words.size !in 1..2) throw malformed("a log is `log VKEY [URL]`")
        logs += once(parseVerifierKey(words.first()))
    }

    private fun readWitness(words: List<String>) {
        if (words.size !in 2..3) throw malformed("a witness is `witness NAME VKEY [URL]`")
        val (name, vkey) = words
        val witness = Witness(name, once(parseWitnessKey(vkey)))
        define(witness)
        witnesses += witness
    }

    private fun readGroup(words: List<String>) {
        if (words.size < 3) throw malformed("a group is `group NAME all|any|NUMBER MEMBER...`")
        val (name, threshold) = words
        val names = words.drop(2)
        val found = names.map { each ->
            val member = known(each)
            if (!taken.add(each)) throw malformed("$each is a member already")
            member
        }
        define(WitnessGroup(name, thresholdOf(threshold, found.size), found))
    }

    private fun readQuorum(words: List<String>) {
        val name = words.singleOrNull() ?: throw malformed("a quorum is `quorum NAME|none`")
        if (quorumLine != null) throw malformed("there is a quorum already")
        quorumLine = QuorumLine(if (name == "none") null else known(name))
    }

    private fun define(member: QuorumMember) {
        if (member.name in RESERVED) throw malformed("${member.name} can not be a name")
        if (member.name in members) throw malformed("${member.name} is there already")
        members[member.name] = member
    }

    private fun known(name: String): QuorumMember =
        members[name] ?: throw malformed("no line before this one has $name")

    private fun once(key: VerifierKey): VerifierKey {
        if (!keys.add(key.publicKey.asList())) throw malformed("the key is there already")
        return key
    }
}

private fun thresholdOf(text: String, members: Int): Int = when (text) {
    "all" -> members
    "any" -> 1
    else -> {
        val threshold = parseDecimal(text)
        if (threshold !in 1..members) throw malformed("$text of $members members can not agree")
        threshold.toInt()
    }
}

private const val REBUILDERS = "rebuilders"
private val RESERVED = setOf("all", "any", "none")

/** Room for some hundred witnesses. */
private const val POLICY_LENGTH_MAX = 65_536
