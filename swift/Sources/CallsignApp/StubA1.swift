extension CallsignError.LocalCode {
    static let keyMissing = "KEY_MISSING"
    static let keyMembersRefused = "KEY_MEMBERS_REFUSED"
    static let callKeyChanged = "CALL_KEY_CHANGED"
    static let callKeyOld = "CALL_KEY_OLD"
    static let callerNotSealer = "CALLER_NOT_SEALER"
    static let invitationOld = "INVITATION_OLD"
    static let ownDeviceInSet = "OWN_DEVICE_IN_SET"
    static let removalIgnored = "REMOVAL_IGNORED"
    static let keyLeftOut = "KEY_LEFT_OUT"
    static let answerInvalid = "ANSWER_INVALID"
}

extension Error {
    func hasCode(_ codes: String...) -> Bool { (self as? CallsignError).map { codes.contains($0.code) } ?? false }
}
