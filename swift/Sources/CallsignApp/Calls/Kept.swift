import CallsignVerify

// What is noted for the next start, as the app's storage has it.

/// What was noted for this start. Throws as `AppStorage.read`.
func readKept(_ storage: any AppStorage, userId: UInt64) async throws -> Kept {
    try await storage.read(keptKey(userId), keptIn) ?? Kept()
}

func keptKey(_ userId: UInt64) -> String { "call.\(userId)" }

/// Nil for members of another form.
func keptIn(_ members: [String: JSONValue]) -> Kept? {
    guard let opened = try? members["opened"] == nil ? [] : members.members("opened").map(openedIn),
        let leaving = try? members.textsOrNil("leaving") ?? [], let accepted = try? members.textsOrNil("accepted") ?? []
    else { return nil }
    return Kept(callId: members.text("callId"), leaving: leaving, opened: opened, accepted: accepted)
}

private func openedIn(_ members: [String: JSONValue]) throws -> OpenedCall {
    let removed = try (members.textsOrNil("removed") ?? []).map { text in
        guard let userId = uint64(text) else { throw answerInvalid() }
        return userId
    }
    return OpenedCall(
        callId: try members.needText("callId"),
        epoch: try members.needSafe("epoch"),
        isOver: members.flag("isOver"),
        removed: removed
    )
}

/// Empty where nothing is noted.
func membersOf(_ kept: Kept) -> [String: JSONValue] {
    var members: [String: JSONValue] = [:]
    if let callId = kept.callId { members["callId"] = .string(callId) }
    if !kept.leaving.isEmpty { members["leaving"] = .array(kept.leaving.map(JSONValue.string)) }
    if !kept.opened.isEmpty { members["opened"] = .array(kept.opened.map { .object(membersOf($0)) }) }
    if !kept.accepted.isEmpty { members["accepted"] = .array(kept.accepted.map(JSONValue.string)) }
    return members
}

private func membersOf(_ opened: OpenedCall) -> [String: JSONValue] {
    var members: [String: JSONValue] = ["callId": .string(opened.callId), "epoch": JSONValue(opened.epoch)]
    if opened.isOver { members["isOver"] = true }
    if !opened.removed.isEmpty { members["removed"] = idsOf(opened.removed) }
    return members
}
