/// Thrown for what the app itself got wrong: a pinned key that is none, a damaged store. Answers of a server never throw it; they
/// become a `Refusal`.
public struct LogError: Error, Equatable {
    /// The kind of thing that a text, a key or a proof fails at. The names are stable.
    public enum Code: String, Sendable {
        /// A text, or octets, not of its form.
        case malformed = "MALFORMED"

        /// A public key that no log, witness or VRF has.
        case keyInvalid = "KEY_INVALID"

        /// A signature that its key has not made.
        case signatureInvalid = "SIGNATURE_INVALID"

        /// An inclusion, consistency or VRF proof that does not hold.
        case proofInvalid = "PROOF_INVALID"
    }

    public let code: Code
    public let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package static func malformed(_ message: String) -> LogError { LogError(.malformed, message) }

    package static func keyInvalid(_ message: String) -> LogError { LogError(.keyInvalid, message) }

    package static func signatureInvalid(_ message: String) -> LogError { LogError(.signatureInvalid, message) }

    package static func proofInvalid(_ message: String) -> LogError { LogError(.proofInvalid, message) }
}
