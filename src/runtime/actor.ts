/**
 * The words of the actor runtime: what an actor is, how it is addressed, and what it may ask of the runtime. Types
 * only; `system.ts` runs them.
 *
 * An actor is found by its address `(kind, id)` and exists for its senders at all times: the first message builds it
 * from the store, and so does the first one after it was passivated, stopped or dropped. It handles one message at a
 * time, to the end, and its handlers are synchronous functions that never await.
 */
import type { SignalError } from '../errors.ts'

/** The state and the handler of one actor. Built by its kind, dropped by the runtime, reached only through a `Ref`. */
export interface Actor<Message> {
  /** Handles one message to the end. A throw is a failure of this actor (`ActorKind.onFailure`). */
  receive(message: Message): void
  /** Asked when the actor has been idle for `idleMs`; false keeps it for another such time. */
  canPassivate?(): boolean
  /**
   * Called once when this actor object ends, for whatever reason, after its last turn. For letting go of what it
   * holds outside; its context does nothing any more.
   */
  onStopped?(): void
}

/** Everything the runtime must know of one kind of actor. */
export interface ActorKind<Message> {
  /** First half of the address. */
  readonly kind: string
  /** Bound of the user lane of each mailbox; above it senders are refused. */
  readonly mailboxMessagesMax: number
  /**
   * Builds the actor from the store, synchronously, when a message waits for it; stored deadlines are armed again
   * here. Undefined means that nothing of this id exists: the messages become dead letters and asks are refused with
   * `NOT_FOUND`. If it throws, the messages keep waiting and the failure counts like one of a handler.
   */
  readonly create: (id: string, context: Context<Message>) => Actor<Message> | undefined
  /**
   * The effect of a throwing handler. `rebuild`: the message is parked, the actor dropped and, after a pause that
   * doubles, built again by the next message. `stop-process`: the system's `fatal` is called and this actor never
   * runs again. A rejected commit is not such a failure: in both cases the actor is dropped and built again, however
   * often. An actor that is dropped with a timer armed, slow work or a commit under way is built again without a
   * message: only the store knows its unfinished work, and perhaps no other message will come. That, too, is after a
   * pause.
   */
  readonly onFailure: 'rebuild' | 'stop-process'
  /**
   * The actor is passivated after so long without a turn, if nothing is under way in it: no armed timer, open ask,
   * commit or slow work. Left out: it stays until it stops.
   */
  readonly idleMs?: number
  /** Called when an actor failed too often: its messages are refused until a minute passes without a failure. */
  readonly onGivenUp?: (id: string) => void
}

/** An actor's requests to the runtime. Belongs to one actor object: once that has ended, calls have no effect. */
export interface Context<Message> {
  /** The actor's own address. */
  readonly self: Ref<Message>
  /** Wall clock, milliseconds since 1970. */
  nowMs(): number
  /** At least 0, less than 1. */
  random(): number
  /**
   * Hands a started write to the runtime. `effects` runs as a turn of this actor, once `durable` has resolved and the
   * effects of every earlier commit of this actor have run. The actor goes on with its messages until then.
   *
   * If `durable` rejects, no further message is taken; earlier commits are released, then the actor is dropped: its
   * later effects are discarded, its open asks refused with `STORE_UNAVAILABLE`, and the next message builds it again,
   * after all its commits have settled, so that it never reads a store that lacks one of its own writes.
   *
   * Choice: only messages sent inside `effects` wait for the commit. A `tell` or an answer made in `receive` leaves at
   * once, so whatever reveals the write belongs inside `effects`.
   */
  commit(durable: PromiseLike<unknown>, effects: () => void): void
  /**
   * Has the outcome of slow work come back as a message, in the control lane. `message` and `failed` run in that turn.
   * If this actor object has ended by then, the outcome is a dead letter: it belonged to a state that is gone.
   */
  tellOutcome<Outcome>(
    work: PromiseLike<Outcome>,
    message: (outcome: Outcome) => Message,
    failed: (error: unknown) => Message,
  ): void
  /**
   * Sends `message` to this actor in the control lane, at the first tick that is at least `ms` from now. A timer of
   * the same key is replaced. A firing that was already under way when its timer was replaced or cancelled is not seen.
   */
  startTimer(key: string, ms: number, message: Message): void
  /** Does nothing when no timer of this key is armed. */
  cancelTimer(key: string): void
  /**
   * Ends this actor object after the current message. Commits under way are released first; messages that wait or
   * come later are handled by a new actor object. Unanswered asks stay open until their deadline.
   */
  stop(): void
}

/**
 * What became of a message. `overloaded` means it was not taken: the mailbox is full, there are too many actors, the
 * actor was given up, the process is stopping, or the kind is unknown; the dead letters say which.
 */
export type TellResult = 'accepted' | 'overloaded'

/** The address of an actor, alive or not. Two of them are the same address when `kind` and `id` are equal. */
export interface Ref<Message> {
  readonly kind: string
  readonly id: string
  /** Puts a message at the end of the user lane. Messages of one sender are handled in the order they were told. */
  tell(message: Message): TellResult
  /** Puts a message into the lane that overtakes the user lane and has no bound: stop, deadline, socket closed. */
  tellControl(message: Message): void
  /** Tells `message`; where it is not taken, tells `instead` in the control lane. */
  tellOr(message: Message, instead: Message): void
  /**
   * Tells the message that `make` builds around a reply, and resolves with the answer. Rejects with `OVERLOADED` at
   * once when refused, with `DEADLINE_EXCEEDED` at the first tick after `deadlineMs`, with `STORE_UNAVAILABLE` when the
   * commit it waited for failed or the process is stopping, with `INTERNAL` when the actor failed over it or was given
   * up, with `NOT_FOUND` when there is no such actor, or with what the actor refuses with. An ask whose deadline
   * has passed before its turn is not handled. Throws `INTERNAL` for a cycle of asks where the system looks for them.
   */
  ask<Answer>(make: (reply: Reply<Answer>) => Message, deadlineMs: number): Promise<Answer>
}

/** The way back to who asked. It may be passed on. Only the first call counts, later ones become dead letters. */
export interface Reply<Answer> {
  answer(answer: Answer): void
  refuse(error: SignalError): void
}
