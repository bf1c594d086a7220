/**
 * Bodies and queries as a developer may read them: their members and what they hold, but no token, code, or key. Bodies are
 * those of the API, and what a client in the making sends in their place.
 */

import { parseJson } from './lossless.ts'

/** The JSON of a body over several lines, without its secrets; undefined for a body that is no JSON. */
export function redactedJson(body: Uint8Array): string | undefined {
  try {
    return printed(withoutSecrets(parseJson(body), false), '')
  } catch {
    // Not a part of it either: without JSON's names, nothing tells which part is a secret.
    return undefined
  }
}

/** The part of an address after the question mark. */
export function redactedQuery(query: string): string {
  return query
    .split('&')
    .map(pair => {
      const [name = '', ...value] = pair.split('=')
      return isSecret(name) && value.length > 0 ? `${name}=…` : redactedText(pair)
    })
    .join('&')
}

/** A text without what looks like a token of ours, or like one of another's where a path is made of names and ids. */
export function redactedPath(path: string): string {
  return path.replace(/[^/]+/g, segment => (OPAQUE.test(segment) ? '…' : redactedText(segment)))
}

function withoutSecrets(value: unknown, isHidden: boolean): unknown {
  if (typeof value === 'string') return isHidden ? hidden(value) : redactedText(value)
  if (typeof value !== 'object' || value === null)
    return isHidden && value !== null ? hidden(`${value}`) : value
  if (Array.isArray(value)) {
    const shown = value.slice(0, ELEMENTS_MAX).map(each => withoutSecrets(each, isHidden))
    return value.length > ELEMENTS_MAX ? [...shown, `… and ${value.length - ELEMENTS_MAX} more`] : shown
  }
  const members = Object.entries(value).map(([name, member]) => {
    // An error's code is a word of ours.
    const isWord = name === 'code' && typeof member === 'string' && /^[A-Z][A-Z_]{2,40}$/.test(member)
    return [redactedText(name), withoutSecrets(member, isHidden || (isSecret(name) && !isWord))] as const
  })
  return Object.fromEntries(members)
}

/** Judged by its name, even one that the API does not know: a misspelt `accessToken` still holds a token. */
function isSecret(name: string): boolean {
  return SUSPICIOUS.test(name) && !SHOWN.has(name)
}

function hidden(text: string): string {
  return `(secret, ${text.length} characters)`
}

function redactedText(text: string): string {
  return text.replace(TOKEN, (_, prefix: string) => `${prefix}…`)
}

/** JSON with two spaces for each level; an integer that no double holds is written as it was sent. */
function printed(value: unknown, indent: string): string {
  if (typeof value === 'bigint') return `${value}`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const inner = `${indent}  `
  const lines = Array.isArray(value)
    ? value.map(each => `${inner}${printed(each, inner)}`)
    : Object.entries(value).map(([name, each]) => `${inner}${JSON.stringify(name)}: ${printed(each, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return lines.length === 0 ? `${open}${close}` : `${open}\n${lines.join(',\n')}\n${indent}${close}`
}

const SUSPICIOUS = /token|otp|code|key|secret|passw|auth|nonce|credential|signature|cookie|^pin$|^waitingId$/i
/** Public, or no secret. */
const SHOWN: ReadonlySet<string> = new Set([
  'publicKey',
  'publicKeyHash',
  'publicKeyHashs',
  'publicKeyIndex',
  'vkey',
  'vrfPublicKey',
  'keyAlgorithm',
  'keyEpoch',
  'keyMembers',
  'keySets',
  'keyRotationIn',
  'tokenType',
  'otpLength',
  'share-token',
  'get-public-keys',
])
/** Access, refresh and share tokens, and JSON Web Tokens. */
const TOKEN = /\b((?:kat|krt|c)_|eyJ)[A-Za-z0-9_.-]{16,}/g
const OPAQUE = /^(?=.*[A-Za-z])(?=.*\d)[\w.~%+=-]{20,}$/
const ELEMENTS_MAX = 50
