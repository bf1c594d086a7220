/** Whether a session has fallen silent: something waits on it, and for almost a second nothing was answered there. */
export class Silence {
  #waiting = 0
  #sinceMs = 0

  begin(): void {
    if (this.#waiting++ === 0) this.#sinceMs = performance.now()
  }

  end(isAnswered: boolean): void {
    this.#waiting--
    if (isAnswered) this.#sinceMs = performance.now()
  }

  get isIdle(): boolean {
    return this.#waiting === 0
  }

  get isLong(): boolean {
    return !this.isIdle && performance.now() - this.#sinceMs >= SILENT_MS
  }
}

/** A ring is sent once more after a second, which has to find the session silent. */
const SILENT_MS = 900
