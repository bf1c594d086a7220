/** A front process as the writer speaks to it (id = the front's name). */

import type { SignalError } from '../src/errors.ts'
import type { ActorKind } from '../src/runtime/actor.ts'
import type { TlsFiles } from '../src/transport/http-deps.ts'
import type { FrontMessage } from './messages.ts'

export interface FrontDeps {
  readonly metrics: () => Promise<string>
  readonly renewCertificate: (files: TlsFiles) => void
  readonly stop: () => void
}

export function frontKind({ metrics, renewCertificate, stop }: FrontDeps): ActorKind<FrontMessage> {
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
            return renewCertificate(message.files)
          case 'stop':
            return stop()
        }
      },
    }),
  }
}
