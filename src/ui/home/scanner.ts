/** Reads QR codes from the camera and from pictures: by the browser itself where it can, else by a package that is loaded then. */

/** The first code in a picture, as text; undefined without one. */
type Decode = (picture: HTMLVideoElement | ImageBitmap) => Promise<string | undefined>

/** The camera, until a code is seen or it is closed. */
export class CameraScan {
  /** Shows what the camera sees. */
  readonly video = document.createElement('video')
  readonly #camera: MediaStream
  #isOver = false

  /** Rejects where there is no camera, or the person does not allow it. */
  static async open(): Promise<CameraScan> {
    return new CameraScan(await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } }))
  }

  private constructor(camera: MediaStream) {
    this.#camera = camera
    this.video.playsInline = true
    this.video.muted = true
    this.video.autoplay = true
    this.video.srcObject = camera
  }

  /** Resolves with the first code's text, or with undefined once the scan is closed, or its video was taken off the page. */
  async read(): Promise<string | undefined> {
    try {
      const decode = await newDecode(FRAME_MS)
      while (!this.#isOver && this.#camera.active) {
        await new Promise(resolve => setTimeout(resolve, FRAME_PAUSE_MS))
        if (!this.video.isConnected) return undefined
        const text = this.video.videoWidth === 0 ? undefined : await decode(this.video)
        if (text !== undefined && !this.#isOver) return text
      }
      return undefined
    } finally {
      this.close()
    }
  }

  close(): void {
    this.#isOver = true
    for (const track of this.#camera.getTracks()) track.stop()
  }
}

/** The text of the code in a picture; undefined without one. Rejects for a file that is no picture. */
export async function readPicture(file: Blob): Promise<string | undefined> {
  const picture = await createImageBitmap(file)
  try {
    return await (await newDecode(PICTURE_MS))(picture)
  } finally {
    picture.close()
  }
}

/** `withinMs` bounds the package's search for damaged codes. */
async function newDecode(withinMs: number): Promise<Decode> {
  const native = await nativeDecode()
  if (native !== undefined) return native
  const { decodeQR } = await import('qr/decode.js')
  const canvas = document.createElement('canvas')
  const drawing = canvas.getContext('2d', { willReadFrequently: true })!
  return async picture => {
    const [width, height] =
      picture instanceof ImageBitmap
        ? [picture.width, picture.height]
        : [picture.videoWidth, picture.videoHeight]
    const scale = Math.min(1, SIDE_MAX / Math.max(width, height))
    canvas.width = Math.max(1, Math.round(width * scale))
    canvas.height = Math.max(1, Math.round(height * scale))
    drawing.drawImage(picture, 0, 0, canvas.width, canvas.height)
    try {
      return decodeQR(drawing.getImageData(0, 0, canvas.width, canvas.height), { timeLimit: withinMs })
    } catch {
      // So it says that there is none.
      return undefined
    }
  }
}

async function nativeDecode(): Promise<Decode | undefined> {
  const { BarcodeDetector } = globalThis as { readonly BarcodeDetector?: DetectorClass }
  const formats = await BarcodeDetector?.getSupportedFormats().catch((): string[] => [])
  if (BarcodeDetector === undefined || !formats?.includes('qr_code')) return undefined
  const detector = new BarcodeDetector({ formats: ['qr_code'] })
  return async picture => (await detector.detect(picture))[0]?.rawValue
}

/** The Shape Detection API, as far as it is used here. */
interface DetectorClass {
  new (options: {
    readonly formats: readonly string[]
  }): { detect(picture: CanvasImageSource): Promise<readonly { readonly rawValue: string }[]> }
  getSupportedFormats(): Promise<readonly string[]>
}

/** Photos have more, which a code that fills some of it does not need. */
const SIDE_MAX = 2_048
const FRAME_PAUSE_MS = 150
const FRAME_MS = 50
const PICTURE_MS = 2_000
