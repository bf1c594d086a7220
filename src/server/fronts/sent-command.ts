/** Commands to calls as they travel from a front to the writer. */

import type { SentCommand } from '../../../actors/messages.ts'
import type { CallRequest } from '../../domain/calls/call-command.ts'

export function sentCommand(command: CallRequest): SentCommand {
  if (!('encryptedAESKeys' in command)) return command
  return { ...command, encryptedAESKeys: JSON.stringify(command.encryptedAESKeys) }
}

export function readCommand(sent: SentCommand): CallRequest {
  if (!('encryptedAESKeys' in sent)) return sent
  return { ...sent, encryptedAESKeys: JSON.parse(sent.encryptedAESKeys) }
}
