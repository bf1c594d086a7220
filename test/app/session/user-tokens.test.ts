/** User tokens in the SDK: the stories that every SDK runs, and questions at the same time. */

import t from 'tap'
import { CallsignError } from '../../../src/app/callsign-error.ts'
import { UserTokens } from '../../../src/app/session/user-tokens.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { readVectors } from '../../support/vectors.ts'

interface Step {
  readonly atMs: number
  readonly audience: string
  readonly asks: boolean
  readonly expiresIn?: number
  readonly refusal?: string
}

interface Stories {
  readonly stories: readonly { readonly name: string; readonly steps: readonly Step[] }[]
}

/** A session whose server answers as `answer` says, and a clock. */
function opened(answer: (audience: string) => Promise<{ token: string; expiresIn: number }>) {
  const clock = { nowMs: 0 }
  const asked: string[] = []
  const request = (operation: string, { audience }: { audience: string }) => {
    asked.push(`${operation} ${audience}`)
    return answer(audience)
  }
  return { clock, asked, tokens: new UserTokens({ request } as never, () => clock.nowMs) }
}

for (const { name, steps } of readVectors<Stories>('user-token-cache').stories) {
  t.test(name, async t => {
    let step = steps[0]!
    let count = 0
    const { clock, asked, tokens } = opened(async () => {
      if (step.refusal !== undefined) throw new CallsignError(step.refusal, '')
      return { token: `${++count}`, expiresIn: step.expiresIn! }
    })
    const last = new Map<string, string>()
    for (step of steps) {
      clock.nowMs = step.atMs
      asked.length = 0
      const answer = step.refusal
        ? await rejectionOf(tokens.for(step.audience))
        : await tokens.for(step.audience)
      t.same(asked, step.asks ? [`POST user/tokens ${step.audience}`] : [])
      t.equal(answer, step.refusal ?? (step.asks ? `${count}` : last.get(step.audience)))
      if (step.refusal === undefined) last.set(step.audience, answer as string)
    }
  })
}

t.test('questions at the same time are one, and fail together', async t => {
  let answer: () => void = () => undefined
  let isRefused = false
  const { asked, tokens } = opened(async () => {
    await new Promise<void>(resolve => {
      answer = resolve
    })
    if (isRefused) throw new CallsignError('NO_ANSWER', '')
    return { token: 'one', expiresIn: 300 }
  })
  const three = Promise.all([tokens.for('a'), tokens.for('a'), tokens.for('a')])
  answer()
  t.same(await three, ['one', 'one', 'one'])
  t.equal(asked.length, 1)
  isRefused = true
  const two = Promise.all([rejectionOf(tokens.for('b')), rejectionOf(tokens.for('b'))])
  answer()
  t.same(await two, ['NO_ANSWER', 'NO_ANSWER'])
  isRefused = false
  const again = tokens.for('b')
  answer()
  t.equal(await again, 'one')
  t.equal(asked.length, 3)
})

t.test('the time on the way counts', async t => {
  const { clock, asked, tokens } = opened(async () => {
    clock.nowMs = 239_000
    return { token: 'late', expiresIn: 300 }
  })
  await tokens.for('a')
  clock.nowMs = 239_999
  await tokens.for('a')
  t.equal(asked.length, 1)
  clock.nowMs = 240_000
  await tokens.for('a')
  t.equal(asked.length, 2)
})
