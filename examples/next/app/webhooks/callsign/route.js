/** Takes events. The signature covers the body as it came, so it is read as text. */

import { verifyWebhook } from '@callsign/sdk/server'

export async function POST(request) {
  try {
    const event = await verifyWebhook(request.headers, await request.text(), process.env.WEBHOOK_SECRET)
    // One may come twice, under the same id.
    console.log(event.id, event.type)
    return new Response(null, { status: 204 })
  } catch (error) {
    if (error.code === 'WEBHOOK_INVALID') return new Response(null, { status: 401 })
    throw error
  }
}
