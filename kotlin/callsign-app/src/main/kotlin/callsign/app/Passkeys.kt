/** Passkeys: the authenticator that the app gives, in the form of WebAuthn's JSON. */
package callsign.app

import callsign.app.CallsignException.LocalCode
import kotlinx.serialization.json.JsonObject

/**
 * Makes passkeys, and signs by them: texts of WebAuthn's JSON in and out, as Android's Credential Manager takes and gives them.
 * Throw `PASSKEY_CANCELLED` where the person has put the question away. docs/build/android.md has one.
 */
public interface PasskeyAuthenticator {
    /** From `PublicKeyCredentialCreationOptions` to `RegistrationResponse`. */
    public suspend fun create(options: String): String

    /** From `PublicKeyCredentialRequestOptions` to `AuthenticationResponse`. */
    public suspend fun get(options: String): String
}

internal fun PasskeyAuthenticator?.assertPresent(): PasskeyAuthenticator =
    this ?: throw CallsignException(LocalCode.PASSKEY_UNAVAILABLE, "The app has given no authenticator.")

/** What the authenticator gives, in the coroutine of the caller: it may ask the person. */
internal suspend fun PasskeyAuthenticator.credential(ask: suspend PasskeyAuthenticator.() -> String): JsonObject =
    objectIn(ask()) ?: throw CallsignException(LocalCode.PASSKEY_UNAVAILABLE, "The authenticator has given no credential.")
