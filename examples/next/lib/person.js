/** Stands for your own login: a cookie that names the person and is signed, so that nobody makes one. */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { cookies } from 'next/headers'

/** The id of the person who asks; undefined for a stranger. */
export async function personId() {
  const [id = '', given = ''] = (await cookies()).get('person')?.value.split('.') ?? []
  const right = createHmac('sha256', process.env.SESSION_SECRET).update(id).digest()
  const signature = Buffer.from(given, 'base64url')
  return signature.length === right.length && timingSafeEqual(signature, right) ? id : undefined
}
