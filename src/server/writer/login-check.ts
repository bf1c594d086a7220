/** The operator's login check, joined to the messages that wait for it. */

import type { CheckedMessage } from '../../delivery/delivery.ts'
import { LoginCheck } from '../../delivery/login-check.ts'
import type { SmsBudget } from '../../store/accounts/sms-budget.ts'
import type { WriterServing } from './writes.ts'

/** Whether the check lets a code leave; undefined where there is none. A code that stays is not counted as a message. */
export function loginCheckOf(
  { config, stores: { database }, onLoginChecked }: WriterServing,
  smsBudget: SmsBudget | undefined,
): ((message: CheckedMessage) => Promise<boolean>) | undefined {
  if (config.loginCheck === undefined) return undefined
  const loginCheck = new LoginCheck(config.loginCheck, onLoginChecked)
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
