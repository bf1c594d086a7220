/**
 * `@callsign/sdk/server`: a company's own backend speaks to its Callsign server, takes its webhooks, and learns who a user is
 * (docs/start/your-users.md). Runs in Node 20 and newer, Deno, Bun and edge runtimes.
 */

export { CallsignServer, type ImportedLine, type ImportedUser, type UserRef } from './callsign-server.ts'
export { CallsignServerError } from './callsign-server-error.ts'
export type { ServerAccess } from './server-link.ts'
export { type ExpectedToken, type TokenUser, verifyToken } from './user-token.ts'
export {
  type ReceivedWebhook,
  verifyWebhook,
  type WebhookHeaders,
} from './webhook.ts'
export type * from './wire.ts'
