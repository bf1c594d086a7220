// Calls and invitations that go on without the people for whom nothing can be sealed.

/// Hears of a user, and of the device of theirs that no key can be sealed for.
typealias OnLeftOut = @CallsignActor (_ userId: UInt64, _ deviceId: UInt64) -> Void

/// Asks for all of these people, and each time one is refused by `KEY_UNSUPPORTED` again without that person. Throws where no
/// person is left.
@CallsignActor func leavingOut<Value>(
    _ people: [UInt64],
    _ onLeftOut: OnLeftOut,
    _ ask: @CallsignActor ([UInt64]) async throws -> Value
) async throws -> Value {
    var people = people
    while true {
        do {
            return try await ask(people)
        } catch let error as CallsignError where error.code == CallsignError.LocalCode.keyUnsupported {
            let userId = try error.members.needId("userId")
            let others = people.filter { $0 != userId }
            // Another user's device, such as this one, is no reason to leave a callee out.
            if others.isEmpty || others.count == people.count { throw error }
            onLeftOut(userId, try error.members.needId("deviceId"))
            people = others
        }
    }
}
