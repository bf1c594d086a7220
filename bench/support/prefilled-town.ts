/**
 * Stores with many users who have ten contacts each, filled through the store's own classes and kept between runs, as the
 * prefilled logs are. Some of the users, spread evenly, can be asked for: they have access tokens and share tokens.
 */

import {
  closeSync,
  cpSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { formatAccessToken, parseAccessToken } from '../../src/domain/accounts/token.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { developmentKeys } from '../../src/server/development/development-keys.ts'
import { type Person, Town } from './people.ts'
import { removeOutdated, storeCodeTag } from './prefill.ts'
import { startServer } from './server.ts'
import { sum } from './statistics.ts'
import { readStoreSize } from './store-rows.ts'

export interface PrefilledTown {
  /** A copy of its own, which may be changed. */
  readonly dataFolder: string
  readonly users: number
  /** In no order of the store. */
  readonly people: readonly TownPerson[]
  /** Of keys and values of all rows, and of the file. */
  readonly rowBytes: number
  readonly fileBytes: number
}

export interface TownPerson {
  /** Good for an hour. */
  readonly accessToken: string
  readonly shareToken: string
}

/** What is kept beside a store; access tokens are over by the time they are read again. */
type Kept = Omit<PrefilledTown, 'dataFolder'>

/** A copy in `folder` of the town of that size, from an earlier run when there is one of the same code. */
export async function prefilledTown(
  storesFolder: string,
  folder: string,
  users: number,
): Promise<PrefilledTown> {
  const numbers = `town-${users}-`
  const kept = join(storesFolder, numbers + storeCodeTag())
  if (existsSync(kept) && Date.now() - statSync(join(kept, PEOPLE_FILE)).mtimeMs > KEPT_MS) {
    rmSync(kept, { recursive: true })
  }
  if (!existsSync(kept)) {
    mkdirSync(storesFolder, { recursive: true })
    removeOutdated(storesFolder, numbers)
    process.stderr.write(`filling a store with ${users} users, kept in ${kept}\n`)
    const draft = `${kept}.draft`
    rmSync(draft, { recursive: true, force: true })
    await fill(draft, users)
    renameSync(draft, kept)
  }
  const dataFolder = join(folder, `town-${users}`)
  rmSync(dataFolder, { recursive: true, force: true })
  cpSync(kept, dataFolder, { recursive: true })
  // Else the system would write gigabytes to the disk while it is measured.
  const copy = openSync(join(dataFolder, 'store/data.mdb'), 'r')
  fsyncSync(copy)
  closeSync(copy)
  const town: Kept = JSON.parse(readFileSync(join(kept, PEOPLE_FILE), 'utf8'))
  return { ...town, dataFolder, people: renewed(dataFolder, town.people) }
}

async function fill(folder: string, users: number): Promise<void> {
  // The server itself makes the store and its keys.
  const server = await startServer({ dataFolder: folder })
  await server.end()
  const town = await Town.open(folder)
  const stride = Math.max(1, Math.floor(users / PEOPLE_ASKED_MAX))
  const userIds: string[] = []
  const people: Person[] = []
  while (userIds.length < users) {
    const settled = await town.settle(Math.min(AT_ONCE, users - userIds.length), 1)
    people.push(...settled.filter((_, at) => (userIds.length + at) % stride === 0))
    userIds.push(...settled.map(({ userId }) => userId))
  }
  const neighbours = Math.min(NEIGHBOURS, Math.floor((users - 1) / 2))
  for (let first = 0; first < users; first += AT_ONCE) {
    const some = userIds.slice(first, first + AT_ONCE)
    await town.link(
      some.flatMap((userId, at) =>
        Array.from({ length: neighbours }, (_, next) => {
          const other = userIds[(first + at + next + 1) % users]!
          return [{ userId }, { userId: other }] as const
        }),
      ),
    )
  }
  const shareTokens = await town.shareTokensOf(people)
  await town.close()
  const kept: Kept = {
    users,
    people: people.map(({ devices: [device] }, at) => ({
      accessToken: device!.token,
      shareToken: shareTokens[at]!,
    })),
    rowBytes: sum([...(await readStoreSize(folder)).values()].map(size => size.keyBytes + size.valueBytes)),
    fileBytes: statSync(join(folder, 'store/data.mdb')).size,
  }
  writeFileSync(join(folder, PEOPLE_FILE), JSON.stringify(kept))
}

/** The same sessions' tokens, with a new lifetime. */
function renewed(dataFolder: string, people: readonly TownPerson[]): TownPerson[] {
  const { secret } = developmentKeys(dataFolder).keys
  const { accessToken: key } = deriveSecrets(Buffer.from(secret, 'base64'))
  const expiresAtS = Math.floor(Date.now() / 1000) + ACCESS_S
  return people.map(({ accessToken, shareToken }) => {
    const token = parseAccessToken(key, accessToken)
    if (token === undefined) throw new Error('an access token is of another server')
    return { accessToken: formatAccessToken(key, { ...token, expiresAtS }), shareToken }
  })
}

const PEOPLE_FILE = 'people.json'
const PEOPLE_ASKED_MAX = 10_000
/** Of those who came next; as many came before and have the user for theirs. */
export const NEIGHBOURS = 5
const AT_ONCE = 500
const ACCESS_S = 3_600
/** Friend requests and share tokens end after a month, which is nothing to be measured by the way. */
const KEPT_MS = 7 * 86_400_000
