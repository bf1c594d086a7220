/**
 * The table of `client-caches.jsonl` tells a cache that is late or lies from a server that lies. `verdict-corpus` compares the
 * file with this client, and the tests in `kotlin/` play it.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { STORIES } from '../support/cache-stories.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

interface Story {
  readonly story: string
  readonly liar: string
  readonly steps: readonly { readonly outcome: string }[]
}

const path = join(PROJECT_ROOT, 'test/vectors/client-caches.jsonl')
const [, ...stories] = readFileSync(path, 'utf8')
  .trim()
  .split('\n')
  .map(line => JSON.parse(line) as Story)

const by = (...liars: string[]) => stories.filter(({ liar }) => liars.includes(liar))
const outcomes = (story: Story) => story.steps.map(({ outcome }) => outcome)
const namesOf = (found: readonly Story[]) => found.map(({ story }) => story)
const hasEvidence = (story: Story) => outcomes(story).some(outcome => / by \d+ and \d+/.test(outcome))

t.test('the table has twenty cases and more, of both liars', async t => {
  t.same(
    namesOf(stories),
    STORIES.map(({ story }) => story),
  )
  t.ok(by('cache').length >= 15, `${by('cache').length} of caches`)
  t.ok(by('server').length >= 8, `${by('server').length} of servers`)
})

t.test('evidence is only against a server that has signed two trees', async t => {
  t.same(namesOf(by('nobody', 'cache').filter(hasEvidence)), [])
  t.equal(by('server').filter(hasEvidence).length, 6)
})

t.test('a server that lies is refused in the end, with evidence or without', async t => {
  t.same(namesOf(by('server').filter(story => !outcomes(story).at(-1)!.startsWith('refused at'))), [])
})

t.test('a lie is never verified, and moves no pin', async t => {
  const pins = by('server').map(story => outcomes(story).map(outcome => / \| (\d+),/.exec(outcome)?.[1]))
  t.same([...new Set(pins.flat())].sort(), ['100', '310'])
})

t.test('an honest log is verified once its caches are', async t => {
  const late = by('nobody', 'cache').filter(
    story => !outcomes(story).some(outcome => /^verified .*(200|310) \|/.test(outcome)),
  )
  t.same(namesOf(late), [
    'a cache serves the tiles of another log of this name',
    'a cache has the checkpoint of another log',
  ])
})
