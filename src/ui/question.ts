/** Questions that the SDK leaves to the person, as refusals of what they asked for: new keys, an old invitation, a device of their own. */

import { type Call, type Callsign, hasCode } from '../app/app.ts'
import { nameIn } from './names.ts'
import { sentenceOf } from './sentence.ts'

export class Question {
  readonly sentence: string
  readonly goOn: () => Promise<void>
  /** Reads the code to compare with the contact. */
  readonly compare: (() => Promise<void>) | undefined
  code: string | undefined

  constructor(sentence: string, goOn: () => Promise<void>, readCode?: () => Promise<string>) {
    this.sentence = sentence
    this.goOn = goOn
    this.compare =
      readCode &&
      (async () => {
        this.code = await readCode().catch(sentenceOf)
      })
  }

  /** Reads the code anew, where it is shown. */
  async renew(): Promise<void> {
    if (this.code !== undefined) await this.compare?.()
  }
}

/** Undefined where the error asks nothing. `again` repeats the action. */
export function questionFor(
  error: unknown,
  me: Callsign | undefined,
  again: () => Promise<void>,
): Question | undefined {
  if (!hasCode(error, 'KEYS_RESET') || me === undefined) return undefined
  const [userId, listHash] = [String(error.members.userId), String(error.members.listHash)]
  const goOn = () => me.contacts.acceptKeys(userId, listHash).then(again)
  const sentence = sentenceOf(error, id => nameIn(me, id))
  return new Question(sentence, goOn, () => me.contacts.comparisonCode(userId))
}

/** Before an old invitation is answered, or one for a device that only the server calls the person's own. */
export function questionOfAnswer(
  error: unknown,
  call: Call,
  answer: (evenIfOld: boolean) => Promise<void>,
): Question | undefined {
  if (hasCode(error, 'INVITATION_OLD')) return new Question(sentenceOf(error), () => answer(true))
  if (!hasCode(error, 'OWN_DEVICE_IN_SET')) return undefined
  const goOn = () => call.acceptDevice(String(error.members.name)).then(() => answer(false))
  return new Question(sentenceOf(error), goOn)
}
