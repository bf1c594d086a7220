/**
 * `@callsign/sdk/browser`: the SDK with its elements as one file for a script tag, which sets the global `callsign`. This module is
 * its beginning; `scripts/support/bundle-browser.ts` makes the file.
 */

export * from '../app/app.ts'
export * from '../app/media/media.ts'
export * from '../app/push/web-push.ts'
export * from './ui.ts'
