/** Calls and invitations that go on without the people for whom nothing can be sealed. */

import { hasCode } from '../callsign-error.ts'

/** The device of theirs that no key can be sealed for. */
export type OnLeftOut = (device: { readonly userId: string; readonly deviceId: string }) => void

/**
 * Asks for all of these people, and each time one is refused by `KEY_UNSUPPORTED` again without that person. Rejects where no
 * person is left.
 */
export async function leavingOut<Value>(
  people: readonly string[],
  ask: (userIds: readonly string[]) => Promise<Value>,
  onLeftOut: OnLeftOut,
): Promise<Value> {
  try {
    return await ask(people)
  } catch (error) {
    if (!hasCode(error, 'KEY_UNSUPPORTED')) throw error
    const { userId, deviceId } = error.members as Record<string, string>
    const others = people.filter(one => one !== userId)
    // Another user's device, such as this one, is no reason to leave a callee out.
    if (others.length === 0 || others.length === people.length) throw error
    onLeftOut({ userId: userId!, deviceId: deviceId! })
    return leavingOut(others, ask, onLeftOut)
  }
}
