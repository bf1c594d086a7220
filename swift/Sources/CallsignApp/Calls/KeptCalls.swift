// What is noted of calls for the next start, in the app's storage.
import CallsignVerify

/// What was noted for this start. Throws as `AppStorage.read`.
func readKept(_ storage: any AppStorage, userId: UInt64) async throws -> Kept {
    try await storage.read(keptKey(userId), keptIn) ?? Kept()
}

/// Nil for members of another form.
func keptIn(_ members: [String: JSONValue]) -> Kept? {
    try? Kept(
        callId: members.text("callId"),
        leaving: members.textsOrNil("leaving") ?? [],
        opened: members["opened"] == nil ? [] : members.members("opened").map(openedIn),
        accepted: members.textsOrNil("accepted") ?? []
    )
}

func membersOf(_ kept: Kept) -> [String: JSONValue] {
    var members = bodyOf(["callId": kept.callId])
    if !kept.leaving.isEmpty { members["leaving"] = .array(kept.leaving.map(JSONValue.string)) }
    if !kept.opened.isEmpty { members["opened"] = .array(kept.opened.map(membersOf)) }
    if !kept.accepted.isEmpty { members["accepted"] = .array(kept.accepted.map(JSONValue.string)) }
    return members
}

func keptKey(_ userId: UInt64) -> String { "call.\(userId)" }

private func openedIn(_ members: [String: JSONValue]) throws -> OpenedCall {
    let removed = try members.textsOrNil("removed") ?? []
    return OpenedCall(
        callId: try members.needText("callId"),
        epoch: try members.needNumber("epoch"),
        isOver: members.flag("isOver"),
        removed: try removed.map { text in
            guard let userId = uint64(text) else { throw answerInvalid() }
            return userId
        }
    )
}

private func membersOf(_ opened: OpenedCall) -> JSONValue {
    var members: [String: JSONValue] = ["callId": .string(opened.callId), "epoch": JSONValue(opened.epoch)]
    if opened.isOver { members["isOver"] = true }
    if !opened.removed.isEmpty { members["removed"] = idsOf(opened.removed) }
    return .object(members)
}
