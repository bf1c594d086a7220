/** A log changes its key in steps, and no app that follows the steps loses it. */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { type Fetch, LogClient, MemoryStore } from '../../src/client/client.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { type LiveLog, registerUsers, startLog } from '../support/live-log.ts'
import { openRefused } from '../support/open-server.ts'

t.test(
  'with two keys of one origin each app finds its own, and the log goes on under the new one',
  async t => {
    const [old, next] = [0, 1].map(() =>
      generateKeys('log.example/changing', length => randomBytes(length)),
    ) as [ReturnType<typeof generateKeys>, ReturnType<typeof generateKeys>]
    const dataFolder = join(t.testdir(), 'data')
    const settings = (first: typeof old, second?: typeof old) => ({
      CALLSIGN_ORIGIN: old.origin,
      KT_PRIVATE_KEY: first.ktPrivateKey,
      ...(second && { KT_SECOND_PRIVATE_KEY: second.ktPrivateKey }),
      VRF_PRIVATE_KEY: old.vrfPrivateKey,
      CALLSIGN_SECRET: old.secret,
    })
    const stores = new Map(['old', 'both', 'new'].map(name => [name, new MemoryStore()]))
    const { vrfPublicKey } = old
    const keys: Record<string, object> = {
      old: { vkey: old.ktPublicKey },
      both: { policy: `log ${old.ktPublicKey}\nlog ${next.ktPublicKey}\nquorum none\n` },
      new: { vkey: next.ktPublicKey },
    }
    /** The names of the apps that take the log as it is shown. */
    const takers = async ({ http }: LiveLog) => {
      const taken: string[] = []
      for (const [name, store] of stores) {
        const fetchOne: Fetch = (url, init) => fetch(url, init)
        const app = new LogClient({ ...keys[name], vrfPublicKey, url: http, store, fetch: fetchOne } as never)
        if ((await app.refreshCheckpoint()).kind === 'verified') taken.push(name)
      }
      return taken
    }
    let users = 0
    const step = async (environment: Record<string, string>, grows = true) => {
      const server = await startLog(t, dataFolder, environment)
      if (grows) await registerUsers(server.client, users++, 1)
      const taken = await takers(server)
      server.client.close()
      await server.end()
      return taken
    }

    t.same(await step(settings(old)), ['old', 'both'])
    const refused = await openRefused({ dataFolder, environment: settings(next) })
    t.match(refused.stderr, /was made with vkey/, 'no other key, before the steps')
    t.match(
      (await openRefused({ dataFolder, environment: settings(next, old) })).stderr,
      /signed|sign/,
      'nor before it has signed',
    )
    t.same(await step(settings(old, next)), ['old', 'both', 'new'])
    t.same(await step(settings(next, old), false), ['old', 'both', 'new'])
    t.same(await step(settings(next, old)), ['old', 'both', 'new'])
    t.same(await step(settings(next)), ['both', 'new'])
    const back = await openRefused({ dataFolder, environment: settings(old) })
    t.match(back.stderr, /was made with vkey/, 'the old key alone is that of another log now')
  },
)
