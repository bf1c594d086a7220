/**
 * Makes `test/vectors/device-list.json`: `node dist/test/support/device-list-vectors.js > test/vectors/device-list.json`.
 * A test holds the file against what this makes.
 */
import { pathToFileURL } from 'node:url'
import {
  type DeviceListContent,
  deviceListHash,
  deviceListToSign,
  type ListedDevice,
} from '../../src/log/device-list.ts'
import { fromUtf8, toHex } from './bytes.ts'
import {
  contentAfter,
  type ListSigner,
  listedDevice,
  listSigner,
  signedList,
  signWith,
} from './device-lists.ts'

export interface DeviceListVectors {
  readonly lists: readonly {
    readonly name: string
    readonly hex: string
    readonly sha256: string
    readonly user_id: string
    readonly seq: number
    readonly device_ids: readonly string[]
    readonly signer_device_id: string
  }[]
  /** `previous` and `next` are names of lists, or hex where no list has that form. */
  readonly judged: readonly {
    readonly name: string
    readonly user_id: string
    readonly previous?: string
    readonly next: string
    readonly verdict: string
    readonly reason?: string
  }[]
}

const USER = 2n ** 40n + 7n
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const [phone, tablet, laptop] = ['phone', 'tablet', 'laptop'].map(name => listSigner(name)) as [
  ListSigner,
  ListSigner,
  ListSigner,
]
const PHONE = device(1n, phone)
const TABLET = device(2n, tablet)
const LAPTOP = device(3n, laptop)

function device(number: bigint, signer: ListSigner): ListedDevice {
  return listedDevice(2n ** 32n + number, fromUtf8(`public key ${number}`), signer)
}

function devices(count: number): ListedDevice[] {
  return Array.from({ length: count }, (_, at) => device(BigInt(at + 1), listSigner(`device ${at + 1}`)))
}

/** Signs content that no honest signer would sign. */
function signedAsItIs(content: DeviceListContent, signer: ListSigner): Uint8Array {
  const signed = deviceListToSign(content)
  return Buffer.concat([signed, signWith(signer, signed)])
}

function withHighS(list: Uint8Array): Uint8Array {
  const copy = Buffer.from(list)
  const s = BigInt(`0x${copy.subarray(-32).toString('hex')}`)
  Buffer.from((ORDER - s).toString(16).padStart(64, '0'), 'hex').copy(copy, copy.length - 32)
  return copy
}

export function deviceListVectors(): DeviceListVectors {
  const first = contentAfter(undefined, { userId: USER, devices: [PHONE], signerDeviceId: PHONE.deviceId })
  const firstBytes = signedList(first, phone)
  const afterFirst = { bytes: firstBytes, seq: 0 }
  const second = contentAfter(afterFirst, { ...first, devices: [PHONE, TABLET] })
  const secondBytes = signedList(second, phone)
  const afterSecond = { bytes: secondBytes, seq: 1 }
  const third = contentAfter(afterSecond, {
    userId: USER,
    devices: [TABLET],
    signerDeviceId: TABLET.deviceId,
  })
  const fresh = contentAfter(undefined, {
    userId: USER,
    devices: [LAPTOP],
    signerDeviceId: LAPTOP.deviceId,
  })
  const full = contentAfter(undefined, {
    userId: USER,
    devices: devices(10),
    signerDeviceId: PHONE.deviceId,
  })
  const lists = new Map<string, { bytes: Uint8Array; content: DeviceListContent }>([
    ['first', { bytes: firstBytes, content: first }],
    ['second adds the tablet', { bytes: secondBytes, content: second }],
    ['third removes the phone', { bytes: signedList(third, tablet), content: third }],
    ['started over on the laptop', { bytes: signedList(fresh, laptop), content: fresh }],
    ['ten devices', { bytes: signedList(full, listSigner('device 1')), content: full }],
  ])
  const hex = (bytes: Uint8Array): string => toHex(bytes)
  const refused = (
    name: string,
    reason: string,
    next: Uint8Array,
    previous: string | undefined = 'first',
    userId = USER,
  ) => ({
    name,
    user_id: String(userId),
    ...(previous === undefined ? {} : { previous }),
    next: hex(next),
    verdict: 'refused',
    reason,
  })
  const eleven = Buffer.from(lists.get('ten devices')!.bytes)
  eleven[80] = 11
  const offCurve = { ...TABLET, signingKey: TABLET.signingKey.with(64, TABLET.signingKey[64]! ^ 1) }
  const user = String(USER)
  return {
    lists: [...lists].map(([name, { bytes, content }]) => ({
      name,
      hex: hex(bytes),
      sha256: hex(deviceListHash(bytes)),
      user_id: String(content.userId),
      seq: content.seq,
      device_ids: content.devices.map(({ deviceId }) => String(deviceId)),
      signer_device_id: String(content.signerDeviceId),
    })),
    judged: [
      { name: 'a first list', user_id: user, next: 'first', verdict: 'first' },
      { name: 'a later list, met first', user_id: user, next: 'second adds the tablet', verdict: 'first' },
      { name: 'ten devices', user_id: user, next: 'ten devices', verdict: 'first' },
      {
        name: 'a device more',
        user_id: user,
        previous: 'first',
        next: 'second adds the tablet',
        verdict: 'successor',
      },
      {
        name: 'a device less',
        user_id: user,
        previous: 'second adds the tablet',
        next: 'third removes the phone',
        verdict: 'successor',
      },
      {
        name: 'another first list',
        user_id: user,
        previous: 'second adds the tablet',
        next: 'started over on the laptop',
        verdict: 'reset',
      },
      { name: 'the same list again', user_id: user, previous: 'first', next: 'first', verdict: 'unchanged' },
      refused('a list of another user', 'another-user', firstBytes, undefined, USER + 1n),
      refused(
        'another list before',
        'wrong-previous-hash',
        signedList({ ...second, previousHash: deviceListHash(lists.get('ten devices')!.bytes) }, phone),
      ),
      refused('a seq left out', 'seq-jump', signedList({ ...second, seq: 2 }, phone)),
      refused('an older list', 'seq-jump', secondBytes, 'third removes the phone'),
      refused(
        'signed by the device that it adds',
        'signer-not-in-previous',
        signedList({ ...second, signerDeviceId: TABLET.deviceId }, tablet),
      ),
      refused(
        'signed by a new signing key of an old device',
        'signer-not-in-previous',
        signedList({ ...second, devices: [device(1n, laptop), TABLET] }, laptop),
      ),
      refused('the higher s', 'high-s', withHighS(secondBytes)),
      refused('signed by the wrong key', 'bad-signature', signedList(second, tablet)),
      refused(
        'r and s are zero',
        'bad-signature',
        Buffer.concat([secondBytes.subarray(0, -64), new Uint8Array(64)]),
      ),
      refused('unsorted', 'malformed', signedAsItIs({ ...second, devices: [TABLET, PHONE] }, phone)),
      refused('a device twice', 'malformed', signedAsItIs({ ...second, devices: [PHONE, PHONE] }, phone)),
      refused(
        'the reserved device id',
        'malformed',
        signedAsItIs({ ...second, devices: [{ ...PHONE, deviceId: 0n }, PHONE] }, phone),
      ),
      refused(
        'a signer that is not named',
        'malformed',
        signedAsItIs({ ...second, devices: [TABLET] }, phone),
      ),
      refused(
        'a point off the curve',
        'malformed',
        signedAsItIs({ ...second, devices: [PHONE, offCurve] }, phone),
      ),
      refused('seq 0 with a previous hash', 'malformed', signedAsItIs({ ...second, seq: 0 }, phone)),
      refused(
        'seq 1 without a previous hash',
        'malformed',
        signedAsItIs({ ...second, previousHash: new Uint8Array(32) }, phone),
      ),
      refused('a seq of 2^53', 'malformed', signedAsItIs({ ...second, seq: 2 ** 53 }, phone)),
      refused('an octet more', 'malformed', Buffer.concat([secondBytes, new Uint8Array(1)])),
      refused('an octet less', 'malformed', secondBytes.subarray(0, -1)),
      refused('no octets', 'malformed', new Uint8Array(0)),
      refused('another version', 'malformed', Buffer.from(Buffer.from(secondBytes)).fill('2', 22, 23)),
      refused('an unknown algorithm', 'malformed', Buffer.from(secondBytes).fill(3, 81 + 8, 81 + 9)),
      refused('eleven devices', 'malformed', Buffer.concat([eleven, new Uint8Array(106)])),
      refused('no devices', 'malformed', Buffer.concat([firstBytes.subarray(0, 80), new Uint8Array(73)])),
    ],
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  console.log(JSON.stringify(deviceListVectors(), undefined, 1))
