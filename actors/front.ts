/** A front process as the writer speaks to it (id = the front's name). */

import { messageOf, SignalError } from '../src/errors.ts'
import type { MediaSettings } from '../src/media/media-settings.ts'
import type { ActorKind, Reply } from '../src/runtime/actor.ts'
import type { TlsFiles } from '../src/transport/http-deps.ts'
import type { FrontMessage } from './messages.ts'

/** `renewCertificate` resolves when new connections get it, `renewMedia` when tokens are for these gateways. */
export function frontKind(
  metrics: () => Promise<string>,
  renewCertificate: (files: TlsFiles) => Promise<void>,
  renewMedia: (settings: MediaSettings) => Promise<void>,
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
            return void answerRenewed(renewCertificate(message.files), message.reply)
          case 'renew-media':
            return void answerRenewed(renewMedia(message.settings), message.reply)
          case 'shed':
            return shed(message.sockets)
          case 'stop':
            return stop()
        }
      },
    }),
  }
}

function answerRenewed(renewal: Promise<void>, reply: Reply<'renewed'>): Promise<void> {
  return renewal.then(
    () => reply.answer('renewed'),
    error => reply.refuse(new SignalError('INTERNAL', messageOf(error), { cause: error })),
  )
}
