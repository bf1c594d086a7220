/** A front process as the writer speaks to it (id = the front's name). */

import { messageOf, SignalError } from '../src/errors.ts'
import type { ActorKind } from '../src/runtime/actor.ts'
import type { TlsFiles } from '../src/transport/http-deps.ts'
import type { FrontMessage } from './messages.ts'

/** `renewCertificate` resolves when new connections get it. */
export function frontKind(
  metrics: () => Promise<string>,
  renewCertificate: (files: TlsFiles) => Promise<void>,
  shed: (sockets: number) => void,
  stop: () => void,
): ActorKind<FrontMessage> {
  return {
    kind: 'front',
    mailboxMessagesMax: 64,
    onFailure: 'rebuild',
    create: () => ({
      receive(message) {
        switch (message.kind) {
          case 'metrics':
            metrics().then(
              text => message.reply.answer(text),
              (error: SignalError) => message.reply.refuse(error),
            )
            return
          case 'renew-certificate':
            renewCertificate(message.files).then(
              () => message.reply.answer('renewed'),
              error => message.reply.refuse(new SignalError('INTERNAL', messageOf(error), { cause: error })),
            )
            return
          case 'shed':
            return shed(message.sockets)
          case 'stop':
            return stop()
        }
      },
    }),
  }
}
