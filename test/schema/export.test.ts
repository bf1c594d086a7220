/** The page about exports has each member of the document, in its order, and no other. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { UserExport } from '../../src/schema/export.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

t.test('docs/protocol/export.md explains every member', async t => {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/protocol/export.md'), 'utf8')
  const [, members = ''] = /\n## Members\n([\s\S]*?)\n## /.exec(page) ?? []
  const rows = [...members.matchAll(/^\| `(\w+)` \| (.+?) \|/gm)]
  t.same(
    rows.map(([, name]) => name),
    Object.keys(UserExport.properties),
  )
})
