/** Trades your login for a sign-in to Callsign: the app gives the token to `me.signInByToken`. */

import { callsign } from '../../lib/callsign.js'
import { personId } from '../../lib/person.js'

export async function POST() {
  const ext = await personId()
  if (ext === undefined) return new Response(null, { status: 401 })
  const { token } = await callsign().users.signInToken({ ext })
  return Response.json({ token })
}
