/** Calls and invitations that go on without the people for whom nothing can be sealed. */
package callsign.app.calls

import callsign.app.CallsignException
import callsign.app.CallsignException.LocalCode
import callsign.app.needId

/** Hears of a user, and of the device of theirs that no key can be sealed for. */
internal typealias OnLeftOut = (userId: ULong, deviceId: ULong) -> Unit

/**
 * Asks for all of these people, and each time one is refused by `KEY_UNSUPPORTED` again without that person. Throws where no
 * person is left.
 */
internal suspend fun <Value> leavingOut(
    people: List<ULong>,
    onLeftOut: OnLeftOut,
    ask: suspend (List<ULong>) -> Value,
): Value = try {
    ask(people)
} catch (error: CallsignException) {
    if (error.code != LocalCode.KEY_UNSUPPORTED) throw error
    val userId = error.members.needId("userId")
    val others = people - userId
    // Another user's device, such as this one, is no reason to leave a callee out.
    if (others.isEmpty() || others.size == people.size) throw error
    onLeftOut(userId, error.members.needId("deviceId"))
    leavingOut(others, onLeftOut, ask)
}
