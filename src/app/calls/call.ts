/** A call as an app sees it: its state, its people, its key's fingerprint, and the commands open to it. */

import type { CallsignError } from '../callsign-error.ts'
import type { CallEndReason, CallParticipant, CallRecord } from '../wire.ts'

export type CallState =
  /** It rings: here if it is incoming, else at the callees. */
  | 'ringing'
  /** This device has answered, and gets the key. */
  | 'joining'
  | 'active'
  /** This device has no key, after a restart or a long loss of the network, and asks the devices in the call for it. */
  | 'rejoining'
  /** No device could give the key: the call goes on once its host makes a new one. */
  | 'keyless'
  | 'ended'

/** Why a call has ended for this device. */
export type CallEnding =
  | CallEndReason
  /** The user has left it or signed out, or the app was closed. */
  | 'left'
  /** It goes on on another device of the user. */
  | 'moved'
  | 'answered_elsewhere'
  | 'declined_elsewhere'
  | 'busy_elsewhere'
  /** It rang without an answer. */
  | 'missed'
  /** The app restarted while it rang at the callees, and the key was gone. */
  | 'key_lost'
  /** It had ended before this device was told why. */
  | 'unknown'

/** A device asks for the key that is not the one its user is in the call with. */
export interface KeyAsk {
  readonly userId: string
  readonly deviceId: string
  readonly displayName: string
  readonly publicKeyHash: string
  /** Its ask is answered with it. */
  readonly nonce?: string
}

export interface EpochKey {
  readonly epoch: number
  /** 32 octets, wiped when the call ends here. */
  readonly key: Uint8Array
  /** Thirty digits: the same on all devices where key, call, epoch and the devices that it is sealed for are the same. */
  readonly fingerprint: string
}

export interface KeyDevice {
  readonly userId: string
  readonly deviceId: string
}

export interface CallPerson {
  readonly userId: string
  /** For screens: this user's own name for them, else their display name. */
  readonly name: string
  /** Their own choice. */
  readonly displayName: string
  /** This user's own name for them. */
  readonly alias?: string
  /** False for a stranger, who may have any name: say so on the screen. Undefined until it is known. */
  readonly isContact?: boolean
}

export interface Reach {
  /**
   * The person is invited, and none of their devices has shown itself to the server for five seconds: say that they can't be
   * reached now. A phone of theirs may ring yet, and the state then changes.
   */
  readonly isUnreachable?: true
  /**
   * Only with `isUnreachable`: the person has the app open on a device that they have not approved, where no call rings. Say
   * that they are to approve it.
   */
  readonly hasUnapprovedDevice?: true
}

/** With the name that a screen shows. */
export type CallMember = CallParticipant & Pick<CallPerson, 'name'> & Reach

/** Which media gateway the call has, and this device's tokens for it. */
export type CallGateway = CallRecord['media']

export interface CallEvents {
  /** Anything below, or a member of the call, has changed. */
  readonly changed: undefined
  readonly state: CallState
  /** There is a key, or a newer one. All devices in the call have the same fingerprint. */
  readonly key: Pick<EpochKey, 'epoch' | 'fingerprint'> & { readonly fromUserId: string }
  /** `sendingKey`, the key of this epoch, now seals frames. */
  readonly sending: Pick<EpochKey, 'epoch'>
  /** A person was invited, can't be reached, rings, joined, left or declined. */
  readonly participant: CallParticipant & Reach
  /** The gateway lets this device in, also again after it has lost its rooms. */
  readonly media: CallGateway
  /** Show the person, who may answer by `grantKey`. */
  readonly 'key-asked': KeyAsk
  readonly ended: { readonly reason: CallEnding }
  /** Something that the call does by itself has failed, such as a new key. */
  readonly error: CallsignError
}

export interface InviteOptions {
  /**
   * People with a device that nothing can be sealed for (`KEY_UNSUPPORTED`): the whole call is refused, or goes on without them
   * where a person is left. The app hears of each by `keys`, as `left-out`. Left out: `refuse`.
   */
  readonly without?: 'refuse' | 'leave-out'
}

export interface Call {
  readonly callId: string
  readonly isIncoming: boolean
  readonly isVideo: boolean
  /** Whether it had begun when this user was invited. */
  readonly isOnGoing: boolean
  /** The person who has invited this user; this user for an outgoing call. */
  readonly caller: CallPerson
  readonly state: CallState
  /** Whether the caller's devices and the key that they sent hold; undefined while that is checked. */
  readonly isVerified: boolean | undefined
  readonly participants: readonly CallMember[]
  /** This user among them. */
  readonly self: CallMember | undefined
  readonly hostUserId: string | undefined
  readonly isHost: boolean
  /** The media gateway's room. */
  readonly roomId: number | undefined
  /** For `joinMedia` of @callsign/sdk/app/media. */
  readonly media: CallGateway | undefined
  /** When the first callee joined, by the server's clock. */
  readonly startedAtMs: number | undefined
  readonly fingerprint: string | undefined
  /** Devices that the newest key was sealed for, this one among them; the fingerprint covers them. Empty without a key. */
  readonly sealedFor: readonly KeyDevice[]
  /** Those that open frames, newest first: the one before goes a few seconds after all have the new one. */
  readonly keys: readonly EpochKey[]
  /** The one that frames are sealed with. */
  readonly sendingKey: EpochKey | undefined
  /** Once the state is `ended`. */
  readonly ending: CallEnding | undefined

  /** Calls the listener at each such event. Gives the function that takes it away. */
  on<Name extends keyof CallEvents>(name: Name, listener: (event: CallEvents[Name]) => unknown): () => void
  /** The next such event. */
  once<Name extends keyof CallEvents>(name: Name): Promise<CallEvents[Name]>

  /**
   * Answers, once the key is verified and opened; the call that this device is in is left for it. Rejects with
   * `KEYS_REFUSED` when the caller does not verify: it may be answered again. `CALLER_NOT_SEALER`: the key comes from another person
   * than the caller. `INVITATION_OLD`: it was sealed more than five minutes ago; ask the user, who may answer `evenIfOld`.
   * `OWN_DEVICE_IN_SET`: ask the user whether `members.name` is a device of theirs, and see `acceptDevice`.
   */
  answer(options?: { readonly evenIfOld?: boolean }): Promise<void>
  /** The user knows this device of theirs, `<userId>_<deviceId>`, which is on no list: keys may be sealed for it too. */
  acceptDevice(name: string): Promise<void>
  /** For all devices of the user. With `timeout` the call counts as missed. */
  decline(reason?: 'declined' | 'busy' | 'timeout'): Promise<void>
  /** Ends it for all: the host, either of two, the caller while it rings. Else it rejects with `NOT_HOST`. */
  end(): Promise<void>
  /** The call goes on without this user. */
  leave(): Promise<void>
  /** Brings contacts in, with a new key for all: it opens nothing of before. */
  invite(userIds: readonly string[], options?: InviteOptions): Promise<void>
  /** The host's right. */
  remove(userId: string): Promise<void>
  /** A new key for all; the host makes one by itself in time and after a person has left. */
  renewKey(): Promise<void>
  /** The present key once more for all, for a device that can't decrypt. */
  resendKey(): Promise<void>
  /**
   * Begins to seal frames with this epoch's key: every other device in the call has it, as a frame from
   * each has shown. Otherwise it is used five seconds after it came. `CallMedia` does it by itself.
   */
  useKey(epoch: number): Promise<void>
  /**
   * Asks the other devices for the present key, when frames of a member don't open with the keys held here. The call
   * goes on. `userId` names that member: the device asks once for each member and key. `CallMedia` does it by itself.
   * The host does not ask, since the host's key is the right one.
   */
  askForKey(userId?: string): Promise<void>
  /** Gives the key to a device that has asked for it. Rejects unless it is on the list of its user. */
  grantKey(ask: KeyAsk): Promise<void>
}
