package callsign.app

import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * A failure with a stable [code], as `@callsign/sdk/app` has them: of the server, or of this side ([LocalCode]). `message` is for
 * developers, [sentence] for the user. [status] is the HTTP
 * status of a refusal. [members] are those of the server's problem document (RFC 9457), such as `attemptsLeft` or `retryIn`.
 */
public class CallsignException(
    public val code: String,
    message: String,
    cause: Throwable? = null,
    public val status: Int? = null,
    public val members: JsonObject = JsonObject(emptyMap()),
) : Exception(message, cause) {
    /** Words for the user, in their language: the server's title, or the SDK's own words in English, Vietnamese or German. */
    public val sentence: String = sentenceFor(code, titleIn(members), Spoken.language)

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

        /** The storage could not be read or written. */
        public const val STORAGE_FAILED: String = "STORAGE_FAILED"

        /** This device is registered with other keys than the ones in its storage. Without the value `members.key` it starts over. */
        public const val DEVICE_KEYS_LOST: String = "DEVICE_KEYS_LOST"

        /** Another user is signed in. */
        public const val ALREADY_SIGNED_IN: String = "ALREADY_SIGNED_IN"

        /** The person has put the question for a passkey away, or there is none for this server. */
        public const val PASSKEY_CANCELLED: String = "PASSKEY_CANCELLED"

        /** The app has given no authenticator, or that one has no passkeys here. */
        public const val PASSKEY_UNAVAILABLE: String = "PASSKEY_UNAVAILABLE"

        /** This device does not have the key of the call yet. */
        public const val KEY_MISSING: String = "KEY_MISSING"

        /** The server or the key log has named keys that do not hold: nothing is encrypted for them. */
        public const val KEYS_REFUSED: String = "KEYS_REFUSED"

        /**
         * A contact's keys are new and nothing known vouches for them. Ask the person in front of the screen, call
         * [Contacts.acceptKeys] with the `userId` and `listHash` of `members`, and repeat; their `kind` says what is new.
         */
        public const val KEYS_RESET: String = "KEYS_RESET"

        /** A user has no keys, or not for this user to see. */
        public const val KEYS_UNAVAILABLE: String = "KEYS_UNAVAILABLE"

        /** The key log could not be asked. */
        public const val LOG_UNANSWERED: String = "LOG_UNANSWERED"

        /** There is no connection to the server, or it broke before the answer came. */
        public const val OFFLINE: String = "OFFLINE"

        /** Another device of the user has removed this one. */
        public const val DEVICE_REMOVED: String = "DEVICE_REMOVED"

        /** The call's key was not sealed by the device that is said to have sent it, or not for this one. */
        public const val CALL_KEY_INVALID: String = "CALL_KEY_INVALID"

        /** Nothing can be sealed for the device `deviceId` of `userId`: it has an RSA key and no place in a device list. */
        public const val KEY_UNSUPPORTED: String = "KEY_UNSUPPORTED"

        /** The call's key is sealed for a device or a person that it must not be for, or comes from one who had no key before. */
        public const val KEY_MEMBERS_REFUSED: String = "KEY_MEMBERS_REFUSED"

        /** The call's key was sent before, for another call, epoch or set of devices. */
        public const val CALL_KEY_REUSED: String = "CALL_KEY_REUSED"

        /** Another key was sent for an epoch whose key is here already. */
        public const val CALL_KEY_CHANGED: String = "CALL_KEY_CHANGED"

        /** The call's key is of an epoch that this device has left behind. */
        public const val CALL_KEY_OLD: String = "CALL_KEY_OLD"

        /** The invitation's key does not come from the person who is said to call. */
        public const val CALLER_NOT_SEALER: String = "CALLER_NOT_SEALER"

        /** The invitation was sealed more than five minutes ago: ask the user, who may answer it all the same. */
        public const val INVITATION_OLD: String = "INVITATION_OLD"

        /** The call's key is sealed for a device of the user's own that is on no list: ask whether it is theirs. */
        public const val OWN_DEVICE_IN_SET: String = "OWN_DEVICE_IN_SET"

        /** The server wants the key for a person whom this device has removed: `members.userId`. */
        public const val REMOVAL_IGNORED: String = "REMOVAL_IGNORED"

        /** The text that was scanned, opened or pasted has no link of a contact and no user id. */
        public const val INVALID_QR: String = "INVALID_QR"

        /** A device in the call got no key, since the key log does not prove it now: `members.name`. */
        public const val KEY_LEFT_OUT: String = "KEY_LEFT_OUT"
    }
}

private fun titleIn(members: JsonObject) = (members["title"] as? JsonPrimitive)?.takeIf { it.isString }?.content

/** Whether the error is a [CallsignException] with one of these codes. */
internal fun Throwable.hasCode(vararg codes: String): Boolean = this is CallsignException && code in codes

/** False where the server refused it to a device that its user has not approved yet. */
internal suspend fun isAllowed(act: suspend () -> Unit): Boolean = try {
    act()
    true
} catch (error: CallsignException) {
    if (error.code != "DEVICE_NOT_LISTED") throw error
    false
}

/** The error that a problem (RFC 9457) tells of. A value of another form has the code and the sentence given here. */
internal fun errorOf(problem: JsonElement?, code: String, sentence: String, status: Int? = null): CallsignException {
    val members = problem as? JsonObject ?: JsonObject(emptyMap())
    val message = members.text("detail") ?: members.text("title") ?: sentence
    return CallsignException(members.text("code") ?: code, message, status = status, members = members)
}

internal fun answerInvalid(cause: Throwable? = null): CallsignException {
    val sentence = "The server answered with something else than it says."
    return CallsignException(CallsignException.LocalCode.ANSWER_INVALID, sentence, cause)
}

internal fun offline(): CallsignException =
    CallsignException(CallsignException.LocalCode.OFFLINE, "There is no connection to the server now.")

internal fun asCallsign(error: Throwable): CallsignException =
    error as? CallsignException ?: CallsignException("INTERNAL", "$error", error)

/** Tells [report] what [act] throws. */
internal suspend fun reporting(report: (Throwable) -> Unit, act: suspend () -> Unit) {
    try {
        act()
    } catch (error: Exception) {
        // A time-out of the app's own is a failure like any other.
        currentCoroutineContext().ensureActive()
        report(error)
    }
}
