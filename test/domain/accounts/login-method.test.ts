import t from 'tap'
import type { LoginMethod } from '../../../src/domain/accounts/account.ts'
import { addressIdentifier, socialIdentifier } from '../../../src/domain/accounts/account.ts'
import {
  decideRemoval,
  METHODS_MAX,
  profileAddress,
  proofAddress,
  refusalOfAddition,
} from '../../../src/domain/accounts/login-method.ts'
import type { MethodId } from '../../../src/domain/ids.ts'

function address(id: number, kind: 'email' | 'phone' = 'email', key = `${kind}-${id}`): LoginMethod {
  return { id: BigInt(id) as MethodId, kind, key, shown: key, addedAtMs: id, lastUsedAtMs: id }
}

function social(id: number): LoginMethod {
  const subject = `subject-${id}`
  const dates = { addedAtMs: id, lastUsedAtMs: id }
  return { id: BigInt(id) as MethodId, kind: 'social', provider: 'p', issuer: 'https://p', subject, ...dates }
}

function passkey(id: number): LoginMethod {
  const bytes = new Uint8Array(32)
  return {
    ...{ id: BigInt(id) as MethodId, kind: 'passkey', addedAtMs: id, lastUsedAtMs: id, counter: 0 },
    ...{ credentialId: `${id}`, publicKey: bytes, userHandle: bytes, transports: [], aaguid: '' },
    ...{ isSyncable: true, isBackedUp: true },
  }
}

const primaryMethodId = 2n as MethodId

t.test('a method that the user has is not added again', async t => {
  const methods = [address(1), social(2)]
  const email = { kind: 'email', identifier: addressIdentifier('email', 'email-1') } as const
  const subject = { kind: 'social', identifier: socialIdentifier('https://p', 'subject-2') } as const
  t.equal(refusalOfAddition(methods, email), 'METHOD_EXISTS')
  t.equal(refusalOfAddition(methods, subject), 'METHOD_EXISTS')
})

t.test('each kind has its limit, and other kinds do not count', async t => {
  for (const kind of ['email', 'phone', 'social', 'passkey'] as const) {
    const make = (id: number) =>
      kind === 'social' ? social(id) : kind === 'passkey' ? passkey(id) : address(id, kind)
    const others = kind === 'email' ? address(100, 'phone') : address(100, 'email')
    const methods = Array.from({ length: METHODS_MAX[kind] }, (_, at) => make(at))
    const candidate = { kind, identifier: 'another' }
    t.equal(refusalOfAddition([...methods, others], candidate), 'LOGIN_METHOD_LIMIT', kind)
    t.equal(refusalOfAddition([...methods.slice(1), others], candidate), undefined, kind)
  }
})

t.test('the last method stays', async t => {
  t.match(decideRemoval({ methods: [social(2)], primaryMethodId }, 2n), {
    kind: 'refused',
    code: 'LAST_LOGIN_METHOD',
  })
})

t.test('a passkey stands beside another method, and is never the last one', async t => {
  const candidate = { kind: 'passkey', identifier: 'another' } as const
  t.equal(refusalOfAddition([], candidate), 'PASSKEY_NOT_PRIMARY')
  t.equal(refusalOfAddition([passkey(1)], candidate), 'PASSKEY_NOT_PRIMARY')
  t.equal(refusalOfAddition([social(1)], candidate), undefined)
  const methods = [passkey(1), address(2), passkey(3)]
  t.match(decideRemoval({ methods, primaryMethodId }, 2n), { code: 'LAST_LOGIN_METHOD' })
  t.match(decideRemoval({ methods, primaryMethodId }, 1n), { kind: 'accepted', primaryMethodId })
  t.match(decideRemoval({ methods: [...methods, social(4)], primaryMethodId }, 2n), {
    kind: 'accepted',
    primaryMethodId: 4n,
  })
})

t.test('no code goes to a passkey', async t => {
  t.equal(proofAddress({ methods: [passkey(1), social(2)], primaryMethodId }), undefined)
  t.equal(proofAddress({ methods: [passkey(1), social(2), address(3)], primaryMethodId })?.key, 'email-3')
})

t.test('a method that the user does not have is not found, be it alone or not', async t => {
  const refused = { kind: 'refused', code: 'LOGIN_METHOD_NOT_FOUND' }
  t.match(decideRemoval({ methods: [social(2)], primaryMethodId }, 3n), refused)
  t.match(decideRemoval({ methods: [social(2), address(4)], primaryMethodId }, 3n), refused)
})

t.test('removing the primary promotes the oldest remaining method', async t => {
  const methods = [address(1), social(2), address(3)]
  t.match(decideRemoval({ methods, primaryMethodId }, 2n), { kind: 'accepted', primaryMethodId: 1n })
  t.match(decideRemoval({ methods: methods.slice(1), primaryMethodId }, 2n), {
    kind: 'accepted',
    primaryMethodId: 3n,
  })
  t.match(decideRemoval({ methods, primaryMethodId }, 3n), { kind: 'accepted', primaryMethodId: 2n })
})

t.test('the profile shows the primary address of a kind, else the oldest one', async t => {
  const methods = [address(1), address(2), address(3, 'phone'), social(4)]
  t.equal(profileAddress({ methods, primaryMethodId }, 'email')?.key, 'email-2')
  t.equal(profileAddress({ methods, primaryMethodId: 4n as MethodId }, 'email')?.key, 'email-1')
  t.equal(profileAddress({ methods, primaryMethodId }, 'phone')?.key, 'phone-3')
  t.equal(profileAddress({ methods: [social(4)], primaryMethodId }, 'phone'), undefined)
})

t.test(
  'a proof of the user goes to the primary, or to the oldest address beside a primary that has none',
  async t => {
    const methods = [social(1), address(2, 'phone'), address(3)]
    t.equal(proofAddress({ methods, primaryMethodId: 3n as MethodId })?.key, 'email-3')
    t.equal(proofAddress({ methods, primaryMethodId: 1n as MethodId })?.key, 'phone-2')
    t.equal(proofAddress({ methods: [social(1)], primaryMethodId }), undefined)
  },
)
