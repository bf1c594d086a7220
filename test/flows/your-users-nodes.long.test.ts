/** The backend of docs/start/your-users.md, at two nodes by turns: users imported, called, told of, known, reported, suspended. */

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { Callsign } from '../../src/app/callsign.ts'
import { memoryStorage } from '../../src/app/storage/storage.ts'
import { CallsignServer, type ReceivedWebhook, verifyToken, verifyWebhook } from '../../src/backend/server.ts'
import { generateUserTokenKey } from '../../src/domain/accounts/user-token.ts'
import { webSocket } from '../support/app-connections.ts'
import { Cluster, type TestNode } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { builtProgram, runProgram } from '../support/programs.ts'
import { environmentOf } from '../support/server.ts'
import { startSmsGateway } from '../support/sms-gateway.ts'
import { WEBHOOK_SECRET } from '../support/webhooks.ts'

const AUDIENCE = 'https://api.acme.example'
const SCOPES = 'users,sign-in,contacts,calls,reports'

/** A key that the operator makes at a node's machine. */
async function newKey({ server, dataFolder, environment }: TestNode): Promise<string> {
  const create = ['create', '--name', 'acme', '--scopes', SCOPES, '--url', server.serverApi]
  const settings = environmentOf({ dataFolder, environment, dev: false })
  const program = [builtProgram('scripts/server-key'), ...create]
  const { code, stdout, stderr } = await runProgram(process.execPath, program, { environment: settings })
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}

function newApp(t: Test, { server }: TestNode): Callsign {
  const pins = { vkey: server.vkey, vrfPublicKey: server.vrfPublicKey }
  const me = new Callsign({ server: server.http, pins, storage: memoryStorage(), webSocket })
  t.teardown(() => me.close())
  return me
}

t.test('a company’s users at two nodes', { skip: skipWithoutPostgres }, async t => {
  const receiver = await startSmsGateway()
  t.teardown(() => receiver.close())
  const cluster = await Cluster.start(t, {
    environment: {
      CALLSIGN_CONTACTS: 'server',
      CALLSIGN_TOKEN_AUDIENCES: AUDIENCE,
      CALLSIGN_TOKEN_KEY: generateUserTokenKey(randomBytes),
      CALLSIGN_WEBHOOK_URL: receiver.url,
      CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET,
    },
  })
  const { one, two } = cluster
  const key = await newKey(two)
  const [atOne, atTwo] = [one, two].map(({ server }) => new CallsignServer({ url: server.serverApi, key }))
  const people = Array.from({ length: 1_000 }, (_, at) => ({
    ref: { ext: `acme-${at}` },
    displayName: `Person ${at}`,
  }))
  let created = 0
  for await (const { status } of atTwo!.users.import(people)) if (status === 'created') created++
  t.equal(created, 1_000)

  const [ann, bob] = [newApp(t, one), newApp(t, two)]
  const [annRef, bobRef] = [{ ext: 'acme-1' }, { ext: 'acme-2' }]
  await ann.signInByToken((await atTwo!.users.signInToken(annRef)).token)
  await bob.signInByToken((await atOne!.users.signInToken(bobRef)).token)
  const added = bob.once('contact_added')
  await atOne!.contacts.put(annRef, bobRef)
  await added
  const ringing = bob.once('ringing')
  const call = await ann.call([bob.userId!])
  const bobs = await ringing
  await bobs.answer()
  t.equal(bobs.fingerprint, call.fingerprint)
  for await (const live of atTwo!.calls.list()) t.equal(live.callId, call.callId)

  const { jwksUrl, issuer } = {
    jwksUrl: `${one.server.http}/.well-known/jwks.json`,
    issuer: one.environment.CALLSIGN_PUBLIC_URL!,
  }
  const user = await verifyToken(await bob.tokenFor(AUDIENCE), { jwksUrl, issuer, audience: AUDIENCE })
  t.match(user, { userId: bob.userId, externalId: 'acme-2' })

  await bob.contacts.report(ann.userId!, { reason: 'fraud', callId: call.callId })
  const ended = bobs.once('ended')
  const signedOut = ann.once('signed-out')
  for await (const { reportId, reported, reason, isCallKnown } of atTwo!.reports.list()) {
    t.match({ userId: reported.userId, isCallKnown }, { userId: ann.userId, isCallKnown: true })
    await atTwo!.users.suspend({ id: reported.userId }, { reason })
    await atOne!.reports.change(reportId, { state: 'resolved' })
  }
  t.match(await ended, { reason: 'hangup' })
  await signedOut
  await t.rejects(atOne!.users.signInToken(annRef), { code: 'ACCOUNT_SUSPENDED', status: 403 })
  t.match(await atOne!.users.get(annRef), { state: 'suspended', suspension: { reason: 'fraud' } })
  await t.test('events', t => hears(t, receiver, call.callId))
})

async function hears(
  t: Test,
  receiver: Awaited<ReturnType<typeof startSmsGateway>>,
  callId: string,
): Promise<void> {
  // Each user's creation, two sign-ins with a device each, a pair, a report, a suspension, three of the call.
  await receiver.received(1_000 + 4 + 1 + 1 + 1 + 3)
  const events: ReceivedWebhook[] = []
  for (const { headers, body } of receiver.requests)
    events.push(await verifyWebhook(headers, body, WEBHOOK_SECRET))
  const ofCall = events.filter(({ data }) => data.subject === `call:${callId}`).map(({ type }) => type)
  t.same(ofCall, ['call.started', 'call.answered', 'call.ended'])
  const count = (type: string) =>
    new Set(events.filter(event => event.type === type).map(({ id }) => id)).size
  t.same(['user.created', 'session.started', 'report.created', 'user.suspended'].map(count), [1_000, 2, 1, 1])
}
