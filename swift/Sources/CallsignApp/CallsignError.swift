import CallsignVerify
import Foundation

/// A failure with a stable `code`, as `@callsign/sdk/app` has them: of the server, or of this side (`LocalCode`). `message` is
/// for developers, `sentence` for the user.
public struct CallsignError: Error, Sendable {
    public let code: String
    public let message: String

    /// The HTTP status of a refusal.
    public let status: Int?

    /// Those of the server's problem document (RFC 9457), such as `attemptsLeft` or `retryIn`.
    public let members: [String: JSONValue]
    public let cause: (any Error)?

    /// Words for the user, in their language: the server's title, or the SDK's own words in English, Vietnamese or German.
    public let sentence: String

    public init(
        _ code: String,
        _ message: String,
        cause: (any Error)? = nil,
        status: Int? = nil,
        members: [String: JSONValue] = [:]
    ) {
        self.code = code
        self.message = message
        self.cause = cause
        self.status = status
        self.members = members
        sentence = sentenceFor(code, title: members["title"]?.string, language: Spoken.language)
    }

    /// Codes of failures that no server has named.
    public enum LocalCode {
        /// No server answered in time, or the answer broke off.
        public static let noAnswer = "NO_ANSWER"

        /// The server answered with something else than its interface says.
        public static let answerInvalid = "ANSWER_INVALID"

        /// The operation needs a session, and there is none.
        public static let signedOut = "SIGNED_OUT"

        /// The storage has a value that this app did not put there.
        public static let storageCorrupt = "STORAGE_CORRUPT"

        /// The storage could not be read or written.
        public static let storageFailed = "STORAGE_FAILED"

        /// This device is registered with other keys than the ones in its storage. Without the value `members.key` it starts
        /// over.
        public static let deviceKeysLost = "DEVICE_KEYS_LOST"

        /// Another user is signed in.
        public static let alreadySignedIn = "ALREADY_SIGNED_IN"

        /// The person has put the question for a passkey away, or there is none for this server.
        public static let passkeyCancelled = "PASSKEY_CANCELLED"

        /// The app has given no authenticator, or that one has no passkeys here.
        public static let passkeyUnavailable = "PASSKEY_UNAVAILABLE"

        /// This device does not have the key of the call yet.
        public static let keyMissing = "KEY_MISSING"

        /// The server or the key log has named keys that do not hold: nothing is encrypted for them.
        public static let keysRefused = "KEYS_REFUSED"

        /// A contact's keys are new and nothing known vouches for them. Ask the person in front of the screen, call
        /// `contacts.acceptKeys` with the `userId` and `listHash` of `members`, and repeat; their `kind` says what is new.
        public static let keysReset = "KEYS_RESET"

        /// A user has no keys, or not for this user to see.
        public static let keysUnavailable = "KEYS_UNAVAILABLE"

        /// The key log could not be asked.
        public static let logUnanswered = "LOG_UNANSWERED"

        /// There is no connection to the server, or it broke before the answer came.
        public static let offline = "OFFLINE"

        /// Another device of the user has removed this one.
        public static let deviceRemoved = "DEVICE_REMOVED"

        /// The call's key was not sealed by the device that is said to have sent it, or not for this one.
        public static let callKeyInvalid = "CALL_KEY_INVALID"

        /// Nothing can be sealed for the device `deviceId` of `userId`: it has an RSA key and no place in a device list.
        public static let keyUnsupported = "KEY_UNSUPPORTED"

        /// The call's key is sealed for a device or a person that it must not be for, or comes from one who had no key before.
        public static let keyMembersRefused = "KEY_MEMBERS_REFUSED"

        /// The call's key was sent before, for another call, epoch or set of devices.
        public static let callKeyReused = "CALL_KEY_REUSED"

        /// Another key was sent for an epoch whose key is here already.
        public static let callKeyChanged = "CALL_KEY_CHANGED"

        /// The call's key is of an epoch that this device has left behind.
        public static let callKeyOld = "CALL_KEY_OLD"

        /// The invitation's key does not come from the person who is said to call.
        public static let callerNotSealer = "CALLER_NOT_SEALER"

        /// The invitation was sealed more than five minutes ago: ask the user, who may answer it all the same.
        public static let invitationOld = "INVITATION_OLD"

        /// The call's key is sealed for a device of the user's own that is on no list: ask whether it is theirs.
        public static let ownDeviceInSet = "OWN_DEVICE_IN_SET"

        /// The server wants the key for a person whom this device has removed: `members.userId`.
        public static let removalIgnored = "REMOVAL_IGNORED"

        /// The text that was scanned, opened or pasted has no link of a contact and no user id.
        public static let invalidQR = "INVALID_QR"

        /// A device in the call got no key, since the key log does not prove it now: `members.name`.
        public static let keyLeftOut = "KEY_LEFT_OUT"
    }
}

extension CallsignError: LocalizedError {
    public var errorDescription: String? { sentence }
}

extension Error {
    /// Whether the error is a `CallsignError` with one of these codes.
    func hasCode(_ codes: String...) -> Bool {
        guard let error = self as? CallsignError else { return false }
        return codes.contains(error.code)
    }
}

/// False where the server refused it to a device that its user has not approved yet.
@CallsignActor func isAllowed(_ act: @CallsignActor () async throws -> Void) async throws -> Bool {
    do {
        try await act()
        return true
    } catch let error as CallsignError where error.code == "DEVICE_NOT_LISTED" {
        return false
    }
}

/// The error that a problem (RFC 9457) tells of. A value of another form has the code and the sentence given here.
func errorOf(_ problem: JSONValue?, _ code: String, _ sentence: String, status: Int? = nil) -> CallsignError {
    let members = problem?.object ?? [:]
    let message = members.text("detail") ?? members.text("title") ?? sentence
    return CallsignError(members.text("code") ?? code, message, status: status, members: members)
}

func answerInvalid(_ cause: (any Error)? = nil) -> CallsignError {
    let sentence = "The server answered with something else than it says."
    return CallsignError(CallsignError.LocalCode.answerInvalid, sentence, cause: cause)
}

func offline() -> CallsignError {
    CallsignError(CallsignError.LocalCode.offline, "There is no connection to the server now.")
}

func signedOut() -> CallsignError {
    CallsignError(CallsignError.LocalCode.signedOut, "You are signed out.")
}

func asCallsign(_ error: any Error) -> CallsignError {
    error as? CallsignError ?? CallsignError("INTERNAL", "\(error)", cause: error)
}

/// Tells `report` what `act` throws, unless this task was cancelled.
@CallsignActor func reporting(_ report: (any Error) -> Void, _ act: @CallsignActor () async throws -> Void) async {
    do {
        try await act()
    } catch {
        if !Task.isCancelled { report(error) }
    }
}
