/**
 * User tokens as other people's libraries take them: golang-jwt with keyfunc, and PyJWT, by the code that docs/build/backend.md shows.
 * Skipped where Go, the Go proxy or Debian's Python packages are not to be had.
 */

import { randomBytes } from 'node:crypto'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { generateUserTokenKey, userTokenKey } from '../../src/domain/accounts/user-token.ts'
import { buildGo } from '../support/go-program.ts'
import { openServer } from '../support/open-server.ts'
import { type Outcome, runProgram, skipWithout } from '../support/programs.ts'
import { AUDIENCE, forgeriesOf, signedIn, tokenSettings, verifierOnPage } from '../support/user-tokens.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const PYTHON = '/usr/bin/python3'
const PACKAGES = '/usr/lib/python3/dist-packages'
const STRANGERS = join(PROJECT_ROOT, 'test/strangers')

const folder = t.testdir({ data: {}, go: {}, python: {} })
const [one, two] = [generateUserTokenKey(randomBytes), generateUserTokenKey(randomBytes)]
const server = await openServer({ dataFolder: join(folder, 'data'), environment: tokenSettings(one, two) })
t.teardown(() => server.end())
const { app, userId, tokenFor } = await signedIn(server.http)

/** The program takes good tokens, by either key, and refuses all else. */
async function judge(t: Test, run: (input: string) => Promise<Outcome>): Promise<void> {
  const token = await tokenFor()
  const nobodys = userTokenKey(generateUserTokenKey(randomBytes))
  const forgeries = Object.entries(forgeriesOf(token, userTokenKey(one), nobodys))
  const lines = [token, ...forgeries.map(([, forgery]) => forgery), app.accessToken!, token]
  const { code, stdout, stderr } = await run(lines.map(line => `${line}\n`).join(''))
  t.equal(code, 0, stderr)
  const [first = '', ...others] = stdout.trimEnd().split('\n')
  t.match(JSON.parse(first), { iss: server.http, sub: userId, aud: AUDIENCE })
  t.equal(others.pop(), first)
  for (const [at, [fault]] of forgeries.entries()) t.equal(others[at], 'refused', fault)
  t.equal(others.at(-1), 'refused', 'an access token')
}

t.test('Go', async t => {
  const source = join(folder, 'go')
  cpSync(join(STRANGERS, 'go-user-tokens'), source, { recursive: true })
  writeFileSync(join(source, 'verifier.go'), verifierOnPage('go', server.http))
  const { skip, run } = await buildGo(source, source)
  if (skip !== false) return t.comment(skip)
  await judge(t, run)
})

t.test(
  'Python',
  { skip: skipWithout([PYTHON, `${PACKAGES}/jwt`, `${PACKAGES}/cryptography`], 'python3-jwt') },
  async t => {
    const path = join(folder, 'python')
    writeFileSync(join(path, 'verifier.py'), verifierOnPage('python', server.http))
    const environment = { PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: '1' }
    const script = join(STRANGERS, 'python/user_tokens.py')
    await judge(t, input => runProgram(PYTHON, [script], { input, environment }))
  },
)
