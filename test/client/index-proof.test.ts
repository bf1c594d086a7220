/** Lookups in an index, each with its verdict; other implementations are held to the same file. */
import t from 'tap'
import { formatIndexLookups, type IndexLookups, indexLookups, verdictOf } from '../support/index-lookups.ts'
import { readVectors } from '../support/vectors.ts'

const vectors = readVectors<IndexLookups>('index-lookups')

t.test('the lookups that are kept have the verdicts they had', async t => {
  for (const lookup of vectors.cases) t.equal(verdictOf(lookup), lookup.verdict, lookup.name)
})

t.test('they are those that the script makes', async t => {
  t.same(JSON.parse(formatIndexLookups(indexLookups())), vectors)
})
