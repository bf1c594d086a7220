/**
 * D3: whatever part of the unsynced writes a power cut leaves, at any moment, the store opens and holds every step that
 * was acknowledged, whole and in order. `CALLSIGN_TORN_IMAGES` sets how many of the images of a run are opened (60;
 * there are about 600), `CALLSIGN_SEED` replays the choice.
 */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cannotTrace } from '../../support/disk-trace.ts'
import type { LmdbFault } from '../../support/forced-lmdb.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { countOf, sized } from '../../support/size.ts'
import {
  ImageReader,
  type Recording,
  recordWriter,
  type TornImage,
  tornImages,
} from '../../support/torn-image.ts'

const IMAGES = countOf('CALLSIGN_TORN_IMAGES', { short: 20, long: 60 })
const STEPS = 60
const skip = cannotTrace()

/** A run of the writer, with the images it may have left, in random order. */
function record(t: Test, fault?: LmdbFault) {
  const seed = seedOf()
  const random = randomFrom(seed)
  const folder = t.testdir()
  const recording = recordWriter(folder, STEPS, fault)
  const images = tornImages(recording, random)
  const shuffled = images.map(image => [random(), image] as const).sort(([one], [other]) => one - other)
  const reader = new ImageReader(folder, fault)
  t.teardown(() => reader.close())
  return { seed, folder, recording, reader, images: shuffled.map(([, image]) => image) }
}

/** The faults of an image; undefined when it holds all it has to. */
async function damageIn(reader: ImageReader, image: TornImage): Promise<string | undefined> {
  const { count, fault } = await reader.read(image)
  // Before there was anything in it, a store may also say that its making was cut short.
  if (image.acknowledged === 0 && fault?.includes('cut short')) return undefined
  const lost = image.acknowledged - count
  if (fault === undefined && lost <= 0) return undefined
  return `${image.name}: ${fault ?? `${lost} steps of ${image.acknowledged} are lost`}`
}

function foldersSyncedBefore({ calls }: Recording, place: number): string[] {
  return calls.filter(({ name, end }) => name === 'fsync' && end < place).map(({ target }) => target)
}

t.test('a power cut at any moment loses nothing that was acknowledged', sized({ skip }), async t => {
  const { seed, recording, reader, images } = record(t)
  t.equal(recording.acknowledged.length, STEPS)
  const damaged: string[] = []
  for (const image of images.slice(0, IMAGES)) {
    const damage = await damageIn(reader, image)
    if (damage !== undefined) damaged.push(damage)
  }
  t.same(damaged, [], `seed ${seed}: ${Math.min(IMAGES, images.length)} of ${images.length} images`)
})

t.test(
  'a new store is found after a power cut: the folders on the way to it are durable',
  { skip },
  async t => {
    const { folder, recording } = record(t)
    const synced = foldersSyncedBefore(recording, recording.acknowledged[0]!)
    const missing = ['data/store', 'data', '.'].filter(name => !synced.includes(join(folder, name)))
    t.same(missing, [])
  },
)

t.test(
  'positive control: without syncs, every image of what was durable has lost steps',
  { skip },
  async t => {
    const { reader, images } = record(t, { noSync: true })
    const durableOnly = images.filter(
      ({ name, acknowledged }) => name.endsWith('nothing else') && acknowledged > 0,
    )
    const unnoticed: string[] = []
    for (const image of durableOnly.slice(0, 20)) {
      if ((await damageIn(reader, image)) === undefined) unnoticed.push(image.name)
    }
    t.same(unnoticed, [])
  },
)

t.test('positive control: with overlapping syncs, some image is damaged', { skip }, async t => {
  const { seed, reader, images } = record(t, { overlappingSync: true })
  for (const [at, image] of images.entries()) {
    const damage = await damageIn(reader, image)
    if (damage !== undefined) return void t.pass(`image ${at} of ${images.length}: ${damage}`)
  }
  t.fail(`seed ${seed}: nothing was found in ${images.length} images`)
})
