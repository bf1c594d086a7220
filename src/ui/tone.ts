/**
 * Tones without sound files: a call that comes in, one that rings at the callees, a second call, and a test of the speaker.
 * Browsers play no sound before the page is touched: the ring is silent then, and phones vibrate.
 */

export type ToneName = 'ring' | 'ring-back' | 'waiting' | 'test'

export class Tone {
  #context: AudioContext | undefined
  #player: HTMLAudioElement | undefined
  #timer: ReturnType<typeof setInterval> | undefined

  /** Sounds until `stop`, the test once. `speaker` is a device's id, where the browser can choose. */
  start(name: ToneName, speaker?: string): void {
    this.stop()
    const context = new AudioContext()
    this.#context = context
    const output = speaker === undefined ? context.destination : this.#outputTo(context, speaker)
    const { everyMs, beeps, volume } = TONES[name]
    const play = () => {
      if (name === 'ring') navigator.vibrate?.(VIBRATION_MS)
      if (context.state === 'suspended') void context.resume().catch(() => undefined)
      for (const beep of beeps) sound(context, output, beep, volume)
    }
    play()
    if (everyMs !== undefined) this.#timer = setInterval(play, everyMs)
  }

  /** At once. */
  stop(): void {
    if (this.#context === undefined) return
    clearInterval(this.#timer)
    navigator.vibrate?.(0)
    this.#player?.pause()
    this.#player = undefined
    void this.#context.close()
    this.#context = undefined
  }

  #outputTo(context: AudioContext, speaker: string): AudioNode {
    const output = context.createMediaStreamDestination()
    const player = new Audio()
    player.srcObject = output.stream
    this.#player = player
    void this.#play(player, speaker)
    return output
  }

  async #play(player: HTMLAudioElement, speaker: string): Promise<void> {
    // One that was pulled out leaves the system's choice.
    await player.setSinkId?.(speaker).catch(() => undefined)
    if (this.#player === player) await player.play().catch(() => undefined)
  }
}

interface Beep {
  readonly atS: number
  readonly forS: number
  readonly hertz: readonly number[]
}

function sound(context: AudioContext, output: AudioNode, { atS, forS, hertz }: Beep, volume: number): void {
  // A suspended context plays it as soon as it runs.
  const [from, to] = [context.currentTime + atS, context.currentTime + atS + forS]
  const gain = context.createGain()
  gain.gain.setValueAtTime(0, from)
  // Without slopes it clicks.
  gain.gain.linearRampToValueAtTime(volume, from + SLOPE_S)
  gain.gain.setValueAtTime(volume, to - SLOPE_S)
  gain.gain.linearRampToValueAtTime(0, to)
  gain.connect(output)
  for (const frequency of hertz) {
    const oscillator = new OscillatorNode(context, { frequency })
    oscillator.connect(gain)
    oscillator.start(from)
    oscillator.stop(to)
  }
}

const RING = [440, 554]
const TONES: Readonly<
  Record<ToneName, { readonly everyMs?: number; readonly volume: number; readonly beeps: readonly Beep[] }>
> = {
  ring: {
    everyMs: 3_000,
    volume: 0.12,
    beeps: [
      { atS: 0, forS: 0.4, hertz: RING },
      { atS: 0.6, forS: 0.4, hertz: RING },
    ],
  },
  'ring-back': { everyMs: 5_000, volume: 0.06, beeps: [{ atS: 0, forS: 1, hertz: [425] }] },
  waiting: { everyMs: 6_000, volume: 0.05, beeps: [{ atS: 0, forS: 0.25, hertz: [425] }] },
  test: {
    volume: 0.15,
    beeps: [523, 659, 784].map((hertz, at) => ({ atS: 0.25 * at, forS: 0.25, hertz: [hertz] })),
  },
}
const VIBRATION_MS = [400, 200, 400]
const SLOPE_S = 0.02
