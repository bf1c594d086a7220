/** What every message of the AsyncAPI document is for, in a sentence. */

import type { SaidCallCommand } from '../../schema/call.ts'
import type { EventType } from '../../schema/event.ts'

/** The summary of a message by its name in the document. */
export function summaryOf(name: string): string {
  return SUMMARIES[name as keyof typeof SUMMARIES]
}

type CommandName = Exclude<SaidCallCommand['kind'], 'accept-rejoin'> | 'acceptRejoin'

const SUMMARIES: Readonly<Record<EventType | CommandName | 'error', string>> = {
  call_invitation: 'Somebody calls: ring until `expiresAt`. It has the key of the call for this device alone',
  call_cancelled: 'The invitation was withdrawn, or the call is over: stop ringing',
  call_missed: 'Nobody of this user answered in time: stop ringing',
  call_answered_elsewhere: 'Another device of the user answered or declined, as `reason` says: stop ringing',
  call_moved: 'Another device of the user took the call over: close media and keep quiet',
  call_ended: 'The call is over: close media, wipe the key',
  participant_request_rejoin: 'A device that lost the key asks for it: verify it, seal the key for it',
  participant_accept_rejoin: 'The key that this device asked for: open it, then `rejoin`',
  key_update: 'A new key of the call, or the present one again',
  key_missing: 'This device gets no key of the epoch: ask for it with `request-rejoin`',
  media_ready:
    'The room at the media gateway lets this device in, or does so again: join it. After a removal it may be another room',
  friend_request: 'Somebody asks to be a contact',
  friend_request_cancelled: 'The request was taken back',
  contact_added: 'The two are contacts now',
  contact_removed: 'The two are contacts no more',
  device_added:
    'Another device signed in as this user: show it. Once the user agrees, sign a device list that names it too',
  device_removed: 'A device of this user was removed',
  device_list_changed: 'The user has another device list, which this device signed: fetch and judge it',
  device_list_reset:
    'The user started over with a device list that this device signed and no listed one: show it as an alarm',
  device_push_lost:
    'Another device took over the push tokens of this one, which calls do not wake any more: show it',
  session_revoked: 'Sessions of this user were ended, and why',
  profile_changed: 'The profile as it is now',
  badge: 'What the badge of the app should say: live only, told on SUBSCRIBE and when it changes',
  error: 'A frame of this connection was refused',
  participant_invited: 'Somebody was asked into the call',
  participant_ringing: 'A device of theirs rings',
  participant_joined: 'Somebody came in, or came back',
  participant_left: 'Somebody left, was lost, or was removed',
  participant_declined: 'Somebody declined, is busy, or did not answer in time',
  media_changed: 'Somebody’s feeds at the media gateway are others',
  host_changed: 'Another is host, and makes the next key',
  call_status: 'The call as a whole changed its status',
  ringing: 'The device rings',
  decline: 'No, with a reason',
  leave: 'The device leaves the call',
  acceptRejoin: 'The present key, sealed for the device that asked',
  keys: 'A new key, sealed for every device in the call, or the present one again',
}
