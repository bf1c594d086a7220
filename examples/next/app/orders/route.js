/** Your API, which knows the user by the token of `me.tokenFor`. */

import { verifyToken } from '@callsign/sdk/server'
import { callsignUrl } from '../../lib/callsign.js'

export async function GET(request) {
  const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '') ?? []
  try {
    const user = await verifyToken(token, {
      jwksUrl: `${callsignUrl}/.well-known/jwks.json`,
      audience: 'https://api.acme.example',
    })
    return Response.json({ ordersOf: user.externalId })
  } catch (error) {
    if (error.code === 'TOKEN_INVALID') return new Response(null, { status: 401 })
    throw error
  }
}
