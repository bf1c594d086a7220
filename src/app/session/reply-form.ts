/**
 * Checks replies against the server's interface. A form is an example: a text, a number, a boolean, a list with one item, an
 * object. A member's name ends in `?` where it is optional; `*` stands for any name. A text that isn't empty names a form:
 * `A|B` one of two, `=true` this very value, `none` no body, `~` anything.
 */

import { REPLY_FORMS } from '../wire.ts'

export function hasForm(value: unknown, form: unknown): boolean {
  if (typeof form === 'string' && form !== '') return form.split('|').some(name => isA(value, name))
  if (Array.isArray(form)) return Array.isArray(value) && value.every(item => hasForm(item, form[0]))
  if (typeof form !== 'object') return typeof value === typeof form
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const members: Readonly<Record<string, unknown>> = { ...value }
  return Object.entries({ ...form }).every(([key, example]) => {
    if (key === '*') return Object.values(members).every(member => hasForm(member, example))
    const name = key.replace('?', '')
    return members[name] === undefined ? name !== key : hasForm(members[name], example)
  })
}

function isA(value: unknown, name: string): boolean {
  if (name === 'none') return value === undefined
  if (name.startsWith('=')) return `=${value}` === name
  return name === '~' || hasForm(value, REPLY_FORMS[name])
}
