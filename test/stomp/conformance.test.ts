/** The conformance cases as far as they are about octets and frames, each in three fragmentations. */
import t from 'tap'
import { FRAGMENTATIONS } from '../support/notation.ts'
import type { FrameOutcome, Outcome, RefusedOutcome, WireCase } from './case.ts'
import { CASES } from './cases.ts'
import { type CodecLoop, loopIn } from './loop.ts'
import { COMMAND, frameFaults } from './outcome.ts'

/** Cases in each section, as the fact sheet counts them. */
const SECTIONS = { A: 37, B: 18, C: 28, D: 14, E: 29, F: 17, G: 11, H: 11, I: 19, J: 12 }

t.test('no case is missing and none is there that the fact sheet has not', async t => {
  const wanted = Object.entries(SECTIONS).flatMap(([section, count]) =>
    Array.from({ length: count }, (_, at) => `${section}-${String(at + 1).padStart(2, '0')}`),
  )
  t.same([...new Set(CASES.map(({ id }) => id))], wanted)
})

for (const [name, fragment] of Object.entries(FRAGMENTATIONS)) {
  t.test(`the codec's share of every case holds, ${name}`, async t => {
    const wireCases = CASES.filter(each => each.kind === 'wire')
    let ran = 0
    for (const each of wireCases) {
      const loop = loopIn(each.session)
      for (const chunk of fragment(withCredentials(each.input))) loop.receive(chunk)
      const faults = isOfCodecAlone(each)
        ? outcomeFaults(loop, each.required)
        : refusalFaults(loop, undefined)
      if (faults.length > 0) t.fail(`${each.id}: ${faults.join('; ')}`)
      ran++
    }
    t.equal(ran, wireCases.length)
  })
}

/** Whether the loop is session enough: the codec refuses, or there is neither store nor ledger nor transaction. */
function isOfCodecAlone({ id, required, input }: WireCase): boolean {
  const refusal = required.find(({ kind }) => kind === 'refused') as RefusedOutcome | undefined
  if (refusal !== undefined) return refusal.by === 'codec'
  return !/^[FG]/.test(id) && !input.includes('/user/queue/')
}

function withCredentials(input: string): string {
  return input.replaceAll('<creds>', 'Authorization:Bearer t').replaceAll(/<[^>]+>/g, 'x')
}

function outcomeFaults(loop: CodecLoop, required: readonly Outcome[]): string[] {
  const awaited = required.filter(
    (outcome): outcome is FrameOutcome =>
      outcome.kind === 'message' || outcome.kind === 'receipt' || outcome.kind === 'connected',
  )
  const refusal = required.find(({ kind }) => kind === 'refused') as RefusedOutcome | undefined
  const faults = refusalFaults(loop, refusal)
  if (loop.isOver !== required.some(({ kind }) => kind === 'closed')) faults.push('closed or not')
  if (loop.sent.length !== awaited.length) {
    faults.push(`${loop.sent.length} frames instead of ${awaited.length}`)
  }
  loop.sent.forEach((frame, at) => {
    const outcome = awaited[at]
    if (outcome === undefined) return
    if (frame.command !== COMMAND[outcome.kind]) faults.push(`${frame.command} instead of ${outcome.kind}`)
    faults.push(...frameFaults(frame, outcome))
  })
  return faults
}

function refusalFaults(loop: CodecLoop, expected: RefusedOutcome | undefined): string[] {
  const closeCode = loop.refusal?.closeCode
  const isAsExpected =
    expected === undefined
      ? closeCode === undefined
      : closeCode !== undefined && expected.close.includes(closeCode)
  return isAsExpected ? [] : [`refused with ${closeCode} instead of ${expected?.close}`]
}
