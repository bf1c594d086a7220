#!/usr/bin/env node
/** Makes, lists and revokes keys of the server API: `server-key create --name N --scopes users,calls`. */

import { SCOPES } from '../src/domain/operators/server-key.ts'
import { type Flags, given, optional, required, runCommand, UsageError } from './support/command.ts'
import { type AskServer, askServer, LINK_FLAGS, LINK_USAGE } from './support/operator-link.ts'

const USAGE = `usage: npx callsign server-key create --name NAME --scopes LIST [--person NAME] [--expires-in DAYS]
       npx callsign server-key list
       npx callsign server-key revoke --id ID

Keys by which your backend asks the server API (docs/build/backend.md). The server has to run. A key is printed once, alone on
stdout; the server keeps only its hash.

  --name NAME        for lists and audit rows, such as the service that has it
  --scopes LIST      of ${SCOPES.join(', ')}
  --person NAME      whose key it is; needed with the scope console, which opens the operators' page
  --expires-in DAYS  when it ends by itself (else never)
  --id ID            of the key, as list prints it
${LINK_USAGE}
Exit code: 0 done, 2 not done.
`

async function create(ask: AskServer, flags: Flags): Promise<void> {
  const person = optional(flags, 'person')
  const expiresAt = expiryOf(optional(flags, 'expires-in'))
  const { id, key } = await ask('POST', '/server-keys', {
    name: required(flags, 'name'),
    scopes: required(flags, 'scopes').split(','),
    ...(person !== undefined && { person }),
    ...(expiresAt !== undefined && { expiresAt }),
  })
  process.stderr.write(`server-key: ${id}. Keep the key now: it is not shown again.\n`)
  process.stdout.write(`${key}\n`)
}

function expiryOf(days: string | undefined): string | undefined {
  if (days === undefined) return undefined
  if (!/^[1-9][0-9]{0,3}$/.test(days))
    throw new UsageError('--expires-in is a number of days, from 1 to 9999')
  return new Date(Date.now() + Number(days) * 86_400_000).toISOString()
}

async function list(ask: AskServer): Promise<void> {
  const { items } = (await ask('GET', '/server-keys')) as { items: readonly object[] }
  for (const item of items) process.stdout.write(`${JSON.stringify(item)}\n`)
}

async function revoke(ask: AskServer, flags: Flags): Promise<void> {
  const id = required(flags, 'id')
  await ask('DELETE', `/server-keys/${encodeURIComponent(id)}`)
  process.stderr.write(`server-key: ${id} is revoked\n`)
}

const ACTS: Readonly<Record<string, (ask: AskServer, flags: Flags) => Promise<void>>> = {
  create,
  list,
  revoke,
}

await runCommand({
  name: 'server-key',
  usage: USAGE,
  operand: 'act',
  flags: {
    ...LINK_FLAGS,
    name: 'value',
    scopes: 'value',
    person: 'value',
    'expires-in': 'value',
    id: 'value',
  },
  async run(flags) {
    const act = given('create, list or revoke', optional(flags, 'act'))
    const run = ACTS[act]
    if (run === undefined) throw new UsageError(`there is no ${act}: create, list or revoke`)
    await run(askServer(flags), flags)
    return 0
  },
})
