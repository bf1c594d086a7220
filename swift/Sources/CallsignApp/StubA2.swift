import CallsignVerify

extension CallsignError.LocalCode {
    static let mediaUnsupported = "MEDIA_UNSUPPORTED"
}

func personOf(_ members: [String: JSONValue]) throws -> Person {
    Person(userId: try members.needId("userId"), displayName: members.text("displayName") ?? "", alias: members.text("alias"))
}
