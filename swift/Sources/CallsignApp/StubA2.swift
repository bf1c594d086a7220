import CallsignVerify

extension CallsignError {
    enum LocalCode {
        static let storageCorrupt = "STORAGE_CORRUPT"
        static let storageFailed = "STORAGE_FAILED"
        static let keyUnsupported = "KEY_UNSUPPORTED"
        static let callKeyInvalid = "CALL_KEY_INVALID"
        static let callKeyReused = "CALL_KEY_REUSED"
        static let mediaUnsupported = "MEDIA_UNSUPPORTED"
    }
}

func personOf(_ members: [String: JSONValue]) throws -> Person {
    Person(userId: try members.needId("userId"), displayName: members.text("displayName") ?? "", alias: members.text("alias"))
}
