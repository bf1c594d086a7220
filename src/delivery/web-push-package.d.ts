/** The parts of web-push that are used; the package has no types. */

declare module 'web-push' {
  interface RequestDetails {
    readonly headers: Readonly<Record<string, string | number>>
    readonly body: Buffer
  }
  interface Asked {
    readonly vapidDetails: null
    readonly TTL: number
    readonly urgency: 'high' | 'normal'
    readonly topic?: string
  }
  const webPush: {
    /** Encrypts `payload` (RFC 8291). Throws for keys that are none. */
    generateRequestDetails(
      subscription: {
        readonly endpoint: string
        readonly keys: { readonly p256dh: string; readonly auth: string }
      },
      payload: string,
      options: Asked,
    ): RequestDetails
    /** The header by which a push service knows the server, good for twelve hours (RFC 8292). */
    getVapidHeaders(
      audience: string,
      subject: string,
      publicKey: string,
      privateKey: string,
      contentEncoding: 'aes128gcm',
    ): { readonly Authorization: string }
  }
  export default webPush
}
