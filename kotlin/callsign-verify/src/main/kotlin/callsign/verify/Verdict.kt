/**
 * What checking the log comes to. A check that fails is an expected answer, so verifiers return it and name the check;
 * they throw only for what the app itself did wrong.
 */
package callsign.verify

/** A check, by the name that `@callsign/sdk/client` gives it too. */
public enum class Check(public val wireName: String) {
    /** An answer or its proof text is not of its form. */
    PROOF("proof"),

    /** The note in it is not of its form. */
    CHECKPOINT("checkpoint"),

    /** The note is of another log. */
    ORIGIN("origin"),

    /** The note is not signed by the log. */
    SIGNATURE("signature"),

    /** The witnesses of the app's policy have not cosigned the checkpoint. */
    WITNESSES("witnesses"),

    /** They have, longer ago than the app allows; or the tree is only the beginning of one seen before. */
    STALE("stale"),

    /** The proof is of a leaf beyond the tree. */
    INDEX("index"),

    /** The VRF proof does not hold for this user and device. */
    VRF("vrf"),

    /** The hash it proves is not the one that the answer states or the app asked for. */
    VRF_HASH("vrfHash"),

    /** The entry is not in the tree that was signed. */
    INCLUSION("inclusion"),

    /** The entry is in the log and holds another key than the app holds. */
    PUBLIC_KEY("publicKey"),

    /** One size was signed with two roots. */
    FORK("fork"),

    /** No source serves the tiles that would show whether a signed tree fits one seen before. */
    TILES("tiles"),

    /** One of two signed trees does not begin with the other: history was rewritten. */
    CONSISTENCY("consistency"),

    /** A key history leaves something out or is not one. */
    HISTORY("history"),

    /** A user's device list, or a device named beside it, does not hold. */
    DEVICE_LIST("deviceList"),

    /** The log's index does not prove that the answer is the newest entry of its hash, or that there is none. */
    COMPLETENESS("completeness"),

    /** Another key was logged under the hash of a device: someone can have put it there to listen in. */
    OTHER_KEY("otherKey"),
}

/** Two signed notes that contradict each other, the one [known] before first. */
public data class Evidence(val known: String, val seen: String)

/**
 * Something the log said does not hold: use nothing of that answer. [detail] is a sentence for the app's own log, no text
 * for users. [evidence] is worth keeping and showing.
 */
public data class Refusal(
    val check: Check,
    val detail: String,
    val evidence: Evidence? = null,
) : LookupVerdict,
    HistoryVerdict,
    CheckpointVerdict,
    ComparisonVerdict,
    WitnessVerdict,
    OwnKeysOutcome,
    AbsenceOutcome,
    DevicesOutcome

/**
 * Nothing could be checked: no network, a server that refused, or a cache that is late. [code] comes from the server's
 * problem document. With [check] the checkpoint could not be compared (`tiles`), or is older than one seen before
 * (`stale`), which is no sign of a lie yet.
 */
public data class Unanswered(
    val detail: String,
    val status: Int? = null,
    val code: String? = null,
    val check: Check? = null,
) : LookupOutcome,
    CheckpointOutcome,
    OwnKeysOutcome,
    AbsenceOutcome,
    DevicesOutcome

/** A check that did not hold, on its way to the verifier that returns its refusal. It has no stack trace. */
internal class CheckFailed(val refusal: Refusal) : RuntimeException(refusal.detail, null, false, false) {
    constructor(check: Check, detail: String, evidence: Evidence? = null) : this(Refusal(check, detail, evidence))
}

/** Runs one check: a [LogException] means that it failed. */
internal inline fun <Value> during(check: Check, act: () -> Value): Value = try {
    act()
} catch (error: LogException) {
    throw CheckFailed(check, error.message.orEmpty())
}
