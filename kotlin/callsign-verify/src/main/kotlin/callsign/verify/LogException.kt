package callsign.verify

/** The kind of thing that a text, a key or a proof fails at. The names are stable. */
public enum class LogErrorCode {
    /** A text, or bytes, not of its form. */
    MALFORMED,

    /** A public key that no log, witness or VRF has. */
    KEY_INVALID,

    /** A signature that its key has not made. */
    SIGNATURE_INVALID,

    /** An inclusion, consistency or VRF proof that does not hold. */
    PROOF_INVALID,
}

/**
 * Thrown for what the app itself got wrong: a pinned key that is none, a damaged store. Answers of a server never
 * throw it; they become a [Refusal].
 */
public class LogException(
    public val code: LogErrorCode,
    message: String,
    cause: Throwable? = null,
) : RuntimeException(message, cause)

internal fun malformed(message: String): LogException = LogException(LogErrorCode.MALFORMED, message)

internal fun keyInvalid(message: String): LogException = LogException(LogErrorCode.KEY_INVALID, message)

internal fun proofInvalid(message: String): LogException = LogException(LogErrorCode.PROOF_INVALID, message)
