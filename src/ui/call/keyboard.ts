/** The keys of a call: M and V switch microphone and camera, Space talks as long as it is held, Escape closes what is open. */

export interface KeyActions {
  readonly isMuted: () => boolean
  readonly mute: (isMuted: boolean) => void
  readonly toggleMicrophone: () => void
  readonly toggleCamera: () => void
  readonly closePanel: () => void
  /** Whether a question waits for its answer: keys belong to it. */
  readonly isAsking: () => boolean
}

export class CallKeyboard {
  readonly #actions: KeyActions
  #isTalking = false
  /** A button keeps the focus after a click: Space talks all the same, and does not press it again. */
  #clicked: EventTarget | undefined

  constructor(actions: KeyActions) {
    this.#actions = actions
  }

  connect(): void {
    addEventListener('keydown', this.#onKeyDown)
    addEventListener('keyup', this.#onKeyUp)
    addEventListener('click', this.#onClick)
    addEventListener('blur', this.#stopTalking)
  }

  disconnect(): void {
    removeEventListener('keydown', this.#onKeyDown)
    removeEventListener('keyup', this.#onKeyUp)
    removeEventListener('click', this.#onClick)
    removeEventListener('blur', this.#stopTalking)
    this.#stopTalking()
  }

  readonly #onKeyDown = (event: KeyboardEvent): void => {
    const { key, repeat, altKey, ctrlKey, metaKey, defaultPrevented } = event
    const [target] = event.composedPath()
    if (altKey || ctrlKey || metaKey || defaultPrevented || this.#actions.isAsking() || isText(target)) return
    const { isMuted, mute, toggleMicrophone, toggleCamera, closePanel } = this.#actions
    if (key === 'Escape') closePanel()
    // A held key repeats.
    if (key.toLowerCase() === 'm' && !repeat) toggleMicrophone()
    if (key.toLowerCase() === 'v' && !repeat) toggleCamera()
    if (key !== ' ') return
    if (isControl(target) && target !== this.#clicked) return
    if (!this.#isTalking && !isMuted()) return
    event.preventDefault()
    if (!this.#isTalking) mute(false)
    this.#isTalking = true
  }

  readonly #onKeyUp = (event: KeyboardEvent): void => {
    if (event.key !== ' ' || !this.#isTalking) return
    event.preventDefault()
    this.#stopTalking()
  }

  readonly #onClick = (event: MouseEvent): void => {
    // A click by the keyboard has no count.
    const control = event.composedPath().find(isControl)
    this.#clicked = event.detail > 0 ? control : undefined
  }

  readonly #stopTalking = (): void => {
    if (this.#isTalking) this.#actions.mute(true)
    this.#isTalking = false
  }
}

function isText(target: EventTarget | undefined): boolean {
  if (!(target instanceof HTMLElement)) return false
  return (
    target.isContentEditable ||
    target.matches('textarea, select, input:not([type="checkbox"], [type="radio"])')
  )
}

/** Space presses it. */
function isControl(target: EventTarget | undefined): boolean {
  return target instanceof HTMLElement && target.matches('button, summary, input, a[href]')
}
