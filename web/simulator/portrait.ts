/** A person's picture: their initials on a colour of their own, and a mark that goes round them. */

export class Portrait {
  readonly track: MediaStreamTrack
  readonly #context: CanvasRenderingContext2D
  readonly #initials: string
  readonly #hue: number
  readonly #timer: ReturnType<typeof setInterval>

  constructor(name: string) {
    const canvas = document.createElement('canvas')
    canvas.width = WIDTH
    canvas.height = HEIGHT
    this.#context = canvas.getContext('2d')!
    this.#initials = Array.from(name.matchAll(/\b\w/g), ([letter]) => letter).join('')
    this.#hue = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 0)
    this.#draw()
    this.#timer = setInterval(() => this.#draw(), 1000 / FRAMES_PER_SECOND)
    this.track = canvas.captureStream(FRAMES_PER_SECOND).getVideoTracks()[0]!
  }

  close(): void {
    clearInterval(this.#timer)
    this.track.stop()
  }

  #draw(): void {
    const context = this.#context
    context.fillStyle = `hsl(${this.#hue} 45% 30%)`
    context.fillRect(0, 0, WIDTH, HEIGHT)
    context.fillStyle = `hsl(${this.#hue} 80% 85%)`
    context.font = '600 72px sans-serif'
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    context.fillText(this.#initials, WIDTH / 2, HEIGHT / 2)
    const angle = (performance.now() / ROUND_MS) * 2 * Math.PI
    context.beginPath()
    context.arc(
      WIDTH / 2 + RADIUS * Math.sin(angle),
      HEIGHT / 2 - RADIUS * Math.cos(angle),
      12,
      0,
      2 * Math.PI,
    )
    context.fill()
  }
}

const [WIDTH, HEIGHT] = [320, 240]
const FRAMES_PER_SECOND = 12
const RADIUS = 95
const ROUND_MS = 3_000
