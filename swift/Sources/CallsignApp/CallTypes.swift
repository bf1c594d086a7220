// What an app sees of a call, apart from the call itself (Call.swift).

public enum CallState: String, Sendable {
    /// It rings: here if it is incoming, else at the callees.
    case ringing

    /// This device has answered, and gets the key.
    case joining
    case active

    /// This device has no key, after a restart or a long loss of the network, and asks the devices in the call for it.
    case rejoining

    /// No device could give the key: the call goes on once its host makes a new one.
    case keyless
    case ended
}

/// Why a call has ended for this device.
public enum CallEnding: String, Sendable {
    case hangup
    case cancelled
    case declined
    case unanswered
    case callerLost = "caller_lost"
    case empty
    case alone
    case limit
    case removed

    /// The operator of the service has ended it, for all or for this user.
    case `operator`

    /// The operator has suspended this user's account.
    case suspended
    case `internal`

    /// The user has left it or signed out, or the app was closed.
    case left

    /// It goes on on another device of the user.
    case moved
    case answeredElsewhere = "answered_elsewhere"
    case declinedElsewhere = "declined_elsewhere"
    case busyElsewhere = "busy_elsewhere"

    /// It rang without an answer.
    case missed

    /// The app restarted while it rang at the callees, and the key was gone.
    case keyLost = "key_lost"

    /// The call had ended before this device heard why.
    case unknown
}

/// How a call is declined: with `timeout` it counts as missed.
public enum DeclineReason: String, Sendable {
    case declined
    case busy
    case timeout
}

/// A device asks for the key that is not the one its user is in the call with. Its ask is answered with `nonce`.
public struct KeyAsk: Sendable, Equatable {
    public let userId: UInt64
    public let deviceId: UInt64
    public let displayName: String
    public let publicKeyHash: String
    public let nonce: String?

    public init(userId: UInt64, deviceId: UInt64, displayName: String, publicKeyHash: String, nonce: String? = nil) {
        self.userId = userId
        self.deviceId = deviceId
        self.displayName = displayName
        self.publicKeyHash = publicKeyHash
        self.nonce = nonce
    }

    var deviceName: String { "\(userId)_\(deviceId)" }
}
