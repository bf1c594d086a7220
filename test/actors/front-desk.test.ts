/** What a front asks of the writer. */

import t from 'tap'
import { frontDeskKind } from '../../actors/front-desk.ts'
import type { ForwardedRequest, FrontDeskMessage } from '../../actors/messages.ts'
import { makeStage } from '../support/actors.ts'

t.test('all that has waited for a paused writer is answered', async t => {
  const { system, world } = makeStage()
  const unused = () => Promise.reject(new Error('unused'))
  const desk = system.define<FrontDeskMessage>(
    frontDeskKind({
      command: unused,
      answer: async route => ({ answer: { status: 200, contentType: '', body: route } }),
      newStreamName: () => 'unused',
      inbox: { settle: unused, markDelivered: unused },
      register: unused,
      catchUp: unused,
      onFault: error => t.fail(String(error)),
    }),
  )('front-1')
  const request = { requestId: 'r' } as ForwardedRequest
  const asked = Array.from({ length: 50_000 }, (_, at) =>
    desk.ask<{ readonly body: string }>(
      reply => ({ kind: 'request', route: `${at}`, request, reply: reply as never }),
      60_000,
    ),
  )
  world.run()
  const answers = await Promise.all(asked)
  t.ok(answers.every(({ body }, at) => body === `${at}`))
})
