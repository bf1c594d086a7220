/** Lookups in an index, each with its verdict; other implementations are held to the same file. */
import t from 'tap'
import { clientBuilds } from '../support/client-builds.ts'
import { formatIndexLookups, type IndexLookups, indexLookups, verdictOn } from '../support/index-lookups.ts'
import { readVectors } from '../support/vectors.ts'

const vectors = readVectors<IndexLookups>('index-lookups')

for (const [build, client] of await clientBuilds()) {
  t.test(`${build}: the lookups that are kept have the verdicts they had`, async t => {
    for (const { name, keys, verdict, ...claim } of vectors.cases)
      t.equal(verdictOn(client.parseLogKeys(vectors.keys[keys]!), claim, client), verdict, name)
  })
}

t.test('they are those that the script makes', async t => {
  t.same(JSON.parse(formatIndexLookups(indexLookups())), vectors)
})
