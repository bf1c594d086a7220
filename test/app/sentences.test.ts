/** Sentences of `@callsign/sdk/app`: what an app shows its user for an error, in three languages. */

import t from 'tap'
import { CallsignError } from '../../src/app/callsign-error.ts'
import { spoken } from '../../src/app/sentences.ts'
import { Server } from '../../src/app/session/server.ts'
import { readVectors } from '../support/vectors.ts'

interface InThree {
  readonly en: string
  readonly vi: string
  readonly de: string
}
interface Case {
  readonly name: string
  readonly code: string
  readonly members: Readonly<Record<string, unknown>>
  readonly language: string
  readonly sentence: string
}

const { sentences, other, cases } = readVectors('sentences') as {
  readonly sentences: readonly ({ readonly codes: readonly string[] } & InThree)[]
  readonly other: InThree
  readonly cases: readonly Case[]
}

t.teardown(() => {
  spoken.language = ''
})

function sentenceIn(language: string, code: string, members = {}): string {
  spoken.language = language
  return new CallsignError(code, 'for developers', { members }).sentence
}

t.test('each code has its sentence in each language, and unknown codes share one', async t => {
  for (const { codes, ...inThree } of [...sentences, { codes: ['INTERNAL', 'ANSWER_INVALID'], ...other }]) {
    for (const code of codes) {
      for (const [language, sentence] of Object.entries(inThree)) {
        t.equal(sentenceIn(language, code), sentence, `${code} in ${language}`)
        t.match(sentence, /^\p{Lu}[^A-Z_]{2}.*\.$/u, 'and it is one')
      }
    }
  }
})

for (const { name, code, members, language, sentence } of cases) {
  t.test(name, async t => t.equal(sentenceIn(language, code, members), sentence))
}

t.test('the server is asked for the app’s language, and its title is the sentence', async t => {
  const asked: (string | null)[] = []
  const fetch = async (_url: unknown, init?: RequestInit) => {
    asked.push(new Headers(init?.headers).get('accept-language'))
    return new Response(
      JSON.stringify({ code: 'OTP_EXPIRED', title: 'Code abgelaufen', detail: 'it is over' }),
      {
        status: 400,
      },
    )
  }
  const server = new Server({
    url: 'http://127.0.0.1',
    fetch: fetch as typeof globalThis.fetch,
    language: 'de-AT',
  })
  const error = await server.request('GET meta', undefined).catch(error => error)
  t.match(error, { code: 'OTP_EXPIRED', message: 'it is over', sentence: 'Code abgelaufen.' })
  t.same(asked, ['de-AT'])
  const lost = () => Promise.reject(new Error('no network'))
  const offline = new Server({ url: 'http://127.0.0.1', fetch: lost, language: 'vi', platform: IMPATIENT })
  const { sentence } = await offline.request('GET meta', undefined).catch(error => error)
  t.equal(sentence, sentences[0]!.vi)
})

const IMPATIENT = { nowMs: () => 0, random: () => 0, wait: async () => {} }
