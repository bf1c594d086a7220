/** The operator's login check, joined to the messages that wait for it. */

import type { CheckedMessage } from '../../delivery/delivery.ts'
import { LoginCheck, type LoginCheckOutcome, type LoginCheckSettings } from '../../delivery/login-check.ts'
import type { SmsBudget } from '../../store/accounts/sms-budget.ts'
import type { Store } from '../../store/engine/store.ts'

/** Whether the check lets a code leave; undefined where there is none. A code that stays is not counted as a message. */
export function loginCheckOf(
  settings: LoginCheckSettings | undefined,
  database: Pick<Store, 'subscribe' | 'change'>,
  smsBudget: Pick<SmsBudget, 'takeBack'> | undefined,
  onChecked: (outcome: LoginCheckOutcome) => void,
): ((message: CheckedMessage) => Promise<boolean>) | undefined {
  if (settings === undefined) return undefined
  const loginCheck = new LoginCheck(settings, onChecked)
  database.subscribe('code-to-check', ({ code }) => void loginCheck.begin(code))
  return async message => {
    if (await loginCheck.allows(message)) return true
    const { charged } = message.check
    if (charged === undefined || smsBudget === undefined) return false
    const paid = { number: message.to, network: charged.network }
    await database.change(change => smsBudget.takeBack(change, paid, charged.atMs))
    return false
  }
}
