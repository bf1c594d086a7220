// Passkeys: the authenticator that the app gives, in the form of WebAuthn's JSON.
import CallsignVerify

/// Makes passkeys, and signs by them: texts of WebAuthn's JSON in and out. Throw `PASSKEY_CANCELLED` where the person has put the
/// question away. `ApplePasskeys` is one.
public protocol PasskeyAuthenticator: Sendable {
    /// From `PublicKeyCredentialCreationOptions` to `RegistrationResponse`.
    func create(_ options: String) async throws -> String

    /// From `PublicKeyCredentialRequestOptions` to `AuthenticationResponse`.
    func get(_ options: String) async throws -> String
}

func assertPresent(_ authenticator: (any PasskeyAuthenticator)?) throws -> any PasskeyAuthenticator {
    guard let authenticator else {
        throw CallsignError(CallsignError.LocalCode.passkeyUnavailable, "The app has given no authenticator.")
    }
    return authenticator
}

/// What the authenticator gives. It may ask the person, so it is cancelled with the caller.
func credentialBy(_ ask: @Sendable () async throws -> String) async throws -> [String: JSONValue] {
    guard let credential = objectIn(try await ask()) else {
        throw CallsignError(CallsignError.LocalCode.passkeyUnavailable, "The authenticator has given no credential.")
    }
    return credential
}
