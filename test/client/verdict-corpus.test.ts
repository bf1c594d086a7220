/** The verdicts that other implementations are held to are those of this client, and `test/vectors` has them. */

import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { cacheLines } from '../support/cache-stories.ts'
import { indexLines } from '../support/index-stories.ts'
import { lyingLines } from '../support/lying-stories.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { corpusLines, FROZEN } from '../support/verdict-corpus.ts'
import { FROZEN_STORIES, storyLines } from '../support/verdict-stories.ts'

async function assertFrozen(t: Test, name: string, lines: AsyncIterable<string>): Promise<void> {
  const frozen: string[] = []
  const input = createReadStream(join(PROJECT_ROOT, 'test/vectors', name))
  for await (const line of createInterface({ input })) frozen.push(line)
  const differing: [string | undefined, string][] = []
  let count = 0
  for await (const line of lines) {
    if (frozen[count] !== line && differing.length < 5) differing.push([frozen[count], line])
    count++
  }
  t.same(differing, [], `if the change is meant, make test/vectors/${name} again`)
  t.equal(frozen.length, count)
}

t.test('the frozen corpus is what its seed makes, with this client’s verdicts', t =>
  assertFrozen(t, 'client-verdicts.jsonl', corpusLines(FROZEN)),
)

t.test('the frozen stories are what their seed makes, with this client’s outcomes', t =>
  assertFrozen(t, 'client-stories.jsonl', storyLines(FROZEN_STORIES)),
)

t.test('the frozen lies are found out as this client finds them', t =>
  assertFrozen(t, 'client-lies.jsonl', lyingLines()),
)

t.test('the frozen lies about the index are found out as this client finds them', t =>
  assertFrozen(t, 'client-index.jsonl', indexLines()),
)

t.test('the table of caches and servers that lie ends as with this client', t =>
  assertFrozen(t, 'client-caches.jsonl', cacheLines()),
)
