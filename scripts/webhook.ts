#!/usr/bin/env node
/** Makes, lists, tries and deletes endpoints of webhooks: `webhook create --endpoint https://app.example.org/hooks`. */

import { type Flags, given, optional, required, runCommand, UsageError } from './support/command.ts'
import { type AskServer, askServer, LINK_FLAGS, LINK_USAGE } from './support/operator-link.ts'

const USAGE = `usage: npx callsign webhook create --endpoint URL [--events LIST]
       npx callsign webhook list
       npx callsign webhook test --id ID
       npx callsign webhook dead --id ID
       npx callsign webhook retry --id ID [--from SEQ]
       npx callsign webhook rotate --id ID
       npx callsign webhook delete --id ID

Endpoints that hear of what happens (docs/build/backend.md). The server has to run. A secret is printed once, alone on stdout.

  --endpoint URL  an https address; http for this machine and private networks
  --events LIST   such as user.created,call.missed (else all)
  --id ID         of the endpoint, as list prints it; settings for that of CALLSIGN_WEBHOOK_URL
  --from SEQ      the first dead event to send again (else all)
${LINK_USAGE}
Exit code: 0 done, 1 a test that the endpoint did not take, 2 not done.
`

const ACTS: Readonly<Record<string, (ask: AskServer, flags: Flags) => Promise<number>>> = {
  create,
  list,
  test,
  dead,
  retry,
  rotate,
  delete: remove,
}

await runCommand({
  name: 'webhook',
  usage: USAGE,
  operand: 'act',
  flags: { ...LINK_FLAGS, endpoint: 'value', events: 'value', id: 'value', from: 'value' },
  async run(flags) {
    const act = given(Object.keys(ACTS).join(', '), optional(flags, 'act'))
    const run = ACTS[act]
    if (run === undefined) throw new UsageError(`there is no ${act}: ${Object.keys(ACTS).join(', ')}`)
    return run(askServer(flags), flags)
  },
})

async function create(ask: AskServer, flags: Flags): Promise<number> {
  const events = optional(flags, 'events')
  const { id, secret } = await ask('POST', '/webhooks', {
    url: required(flags, 'endpoint'),
    ...(events !== undefined && { events: events.split(',') }),
  })
  say(`${id}. Give the endpoint its secret now: it is not shown again.`)
  process.stdout.write(`${secret}\n`)
  return 0
}

async function list(ask: AskServer): Promise<number> {
  return print(await ask('GET', '/webhooks'))
}

async function test(ask: AskServer, flags: Flags): Promise<number> {
  const { outcome, reason } = await ask('POST', `${pathOf(flags)}/test`)
  say(outcome === 'taken' ? 'the endpoint has taken it' : `the endpoint has not taken it: ${reason}`)
  return outcome === 'taken' ? 0 : 1
}

async function dead(ask: AskServer, flags: Flags): Promise<number> {
  return print(await ask('GET', `${pathOf(flags)}/dead`))
}

async function retry(ask: AskServer, flags: Flags): Promise<number> {
  const text = optional(flags, 'from') ?? '0'
  if (!/^[0-9]{1,14}$/.test(text)) throw new UsageError('--from is the seq of an event')
  let [from, retried]: [number | undefined, number] = [Number(text), 0]
  while (from !== undefined) {
    const answer = (await ask('POST', `${pathOf(flags)}/retry`, { from })) as {
      retried: number
      next?: number
    }
    retried += answer.retried
    from = answer.next
  }
  say(`${retried} events wait again`)
  return 0
}

async function rotate(ask: AskServer, flags: Flags): Promise<number> {
  const { secret } = await ask('POST', `${pathOf(flags)}/rotate`)
  say('events are signed by this secret and the one before: give it to the endpoint now')
  process.stdout.write(`${secret}\n`)
  return 0
}

async function remove(ask: AskServer, flags: Flags): Promise<number> {
  await ask('DELETE', pathOf(flags))
  say(`${required(flags, 'id')} is deleted, with all that waited for it`)
  return 0
}

function pathOf(flags: Flags): string {
  return `/webhooks/${encodeURIComponent(required(flags, 'id'))}`
}

function print({ items }: Readonly<Record<string, unknown>>): number {
  for (const item of items as readonly object[]) process.stdout.write(`${JSON.stringify(item)}\n`)
  return 0
}

function say(sentence: string): void {
  process.stderr.write(`webhook: ${sentence}\n`)
}
