import CallsignVerify

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

    init(_ code: String, _ message: String, cause: (any Error)? = nil, status: Int? = nil, members: [String: JSONValue] = [:]) {
        self.code = code
        self.message = message
        self.cause = cause
        self.status = status
        self.members = members
    }
}
