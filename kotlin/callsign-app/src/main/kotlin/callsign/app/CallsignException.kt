package callsign.app

import kotlinx.serialization.json.JsonObject

/**
 * A failure with a stable [code], as `callsign/app` has them: of the server, or of this side ([LocalCode]). [status] is the HTTP
 * status of a refusal. [members] are those of the server's problem document (RFC 9457), such as `attemptsLeft` or `retryIn`.
 */
public class CallsignException(
    public val code: String,
    message: String,
    cause: Throwable? = null,
    public val status: Int? = null,
    public val members: JsonObject = JsonObject(emptyMap()),
) : Exception(message, cause) {
    /** Codes of failures that no server has named. */
    public object LocalCode {
        /** No server answered in time, or the answer broke off. */
        public const val NO_ANSWER: String = "NO_ANSWER"

        /** The server answered with something else than its interface says. */
        public const val ANSWER_INVALID: String = "ANSWER_INVALID"

        /** The operation needs a session, and there is none. */
        public const val SIGNED_OUT: String = "SIGNED_OUT"

        /** The storage has a value that this app did not put there. */
        public const val STORAGE_CORRUPT: String = "STORAGE_CORRUPT"

        /** The call's key was not sealed by the device that is said to have sent it, or not for this one. */
        public const val CALL_KEY_INVALID: String = "CALL_KEY_INVALID"

        /** A device has a key of an algorithm that this package does not speak. */
        public const val KEY_UNSUPPORTED: String = "KEY_UNSUPPORTED"
    }
}
