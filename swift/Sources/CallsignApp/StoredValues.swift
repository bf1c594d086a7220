import CallsignVerify

/// JSON objects in the app's storage, and the errors of a storage that fails.
extension AppStorage {
    /// The text under the key, if there is one. Throws `STORAGE_FAILED` where the storage can't be read.
    func readText(_ key: String) async throws -> String? {
        try await guarded("The value \"\(key)\" could not be read from the storage.") { try await get(key) }
    }

    /// Nil takes the text away. Throws `STORAGE_FAILED`, for example where the storage is full.
    func writeText(_ key: String, _ text: String?) async throws {
        try await guarded("The value \"\(key)\" could not be written to the storage.") { try await put(key, text) }
    }

    /// What `read` makes of the object under the key. Throws `STORAGE_CORRUPT` where there is another text or `read` gives nil.
    func read<Value>(_ key: String, _ read: ([String: JSONValue]) throws -> Value?) async throws -> Value? {
        guard let text = try await readText(key) else { return nil }
        guard let members = JSONValue(text)?.object, let value = try read(members) else { throw storageCorrupt(key) }
        return value
    }

    func write(_ key: String, _ value: [String: JSONValue]?) async throws {
        try await writeText(key, value.map { JSONValue.object($0).text })
    }
}

func storageCorrupt(_ key: String, cause: (any Error)? = nil) -> CallsignError {
    let sentence = "The stored value \"\(key)\" is damaged. Remove it to start without it."
    return CallsignError(CallsignError.LocalCode.storageCorrupt, sentence, cause: cause, members: keyMember(key))
}

func keyMember(_ key: String) -> [String: JSONValue] { ["key": .string(key)] }

private func guarded<Value>(_ sentence: String, _ act: () async throws -> Value) async throws -> Value {
    do {
        return try await act()
    } catch let error as CallsignError {
        throw error
    } catch {
        try Task.checkCancellation()
        throw CallsignError(CallsignError.LocalCode.storageFailed, sentence, cause: error)
    }
}
