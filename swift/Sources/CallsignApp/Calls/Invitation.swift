import CallsignVerify

/// An invitation, by socket or by push. Times are milliseconds since 1970.
struct Invitation: Sendable, Equatable {
    let callId: String
    let caller: Person
    let isVideo: Bool
    let isOnGoing: Bool
    let encryptedAESKey: String
    let keyEpoch: Int

    /// The device that has sealed the key, as the server says.
    let keyFrom: Sender?
    let sentAtMs: Int
    let expiresAtMs: Int
}

func invitationOf(_ members: [String: JSONValue]) throws -> Invitation {
    guard let callId = members.callId() else { throw answerInvalid() }
    return Invitation(
        callId: callId,
        caller: try callerIn(members),
        isVideo: members.flag("isVideo"),
        isOnGoing: members.flag("isOnGoing"),
        encryptedAESKey: try members.needText("encryptedAESKey"),
        keyEpoch: try members.needSafe("keyEpoch"),
        keyFrom: try keyFromIn(members),
        sentAtMs: try members.needSafe("sentAt"),
        expiresAtMs: try members.needTimeMs("expiresAt")
    )
}

/// The invitation of a push, whose members are texts. Nil where the key was too long for a push, or the push makes no sense: the
/// call rings with the next connection.
func invitationIn(_ members: [String: String]) -> Invitation? {
    guard members["encryptedAESKey"] != nil else { return nil }
    // A caller of whom it says nothing is a stranger.
    let said = ["isContact": "false"].merging(members) { $1 }
    return try? invitationOf(said.mapValues(JSONValue.string))
}
