/**
 * Questions that a call has left to the person, for as long as the app has the call: elements come and go with the page's
 * framework, and the SDK says each thing once.
 */

import { type Call, type CallsignError, hasCode, type KeyAsk } from '../app/app.ts'

class OpenQuestions {
  /** Devices that ask for the key. */
  asks: readonly KeyAsk[] = []
  /** Why the newest key was not taken. */
  refusal: CallsignError | undefined

  constructor(call: Call) {
    call.on('key-asked', ask => {
      this.putAway(ask)
      this.asks = [...this.asks, ask]
    })
    call.on('error', error => {
      // Without a connection the page says that.
      if (!hasCode(error, 'OFFLINE')) this.refusal = error
    })
    call.on('key', () => {
      this.refusal = undefined
    })
  }

  putAway({ userId, deviceId }: KeyAsk): void {
    this.asks = this.asks.filter(one => one.userId !== userId || one.deviceId !== deviceId)
  }
}

const known = new WeakMap<Call, OpenQuestions>()

/** Those of the call, since an element asked for them first. Listeners of the call that are added later find them as they are then. */
export function openQuestionsOf(call: Call): OpenQuestions {
  const questions = known.get(call) ?? new OpenQuestions(call)
  known.set(call, questions)
  return questions
}
