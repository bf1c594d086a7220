/** How loud a microphone is. It hears a copy of the track, which a muted track does not silence. */

export class VoiceLevel {
  readonly #track: MediaStreamTrack
  readonly #context: AudioContext
  readonly #analyser: AnalyserNode
  readonly #samples: Float32Array<ArrayBuffer>

  constructor(track: MediaStreamTrack) {
    this.#track = track.clone()
    this.#track.enabled = true
    this.#context = new AudioContext()
    this.#analyser = this.#context.createAnalyser()
    // A third of a second: no look misses a syllable.
    this.#analyser.fftSize = 16_384
    this.#samples = new Float32Array(this.#analyser.fftSize)
    this.#context.createMediaStreamSource(new MediaStream([this.#track])).connect(this.#analyser)
  }

  /** 0 to 1: the greatest of the last samples. */
  read(): number {
    // Before the page is touched it may not run.
    if (this.#context.state === 'suspended') void this.#context.resume().catch(() => undefined)
    this.#analyser.getFloatTimeDomainData(this.#samples)
    return this.#samples.reduce((most, one) => Math.max(most, Math.abs(one)), 0)
  }

  end(): void {
    this.#track.stop()
    void this.#context.close()
  }
}
