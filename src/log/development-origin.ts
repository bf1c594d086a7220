/** Names the log of each development server that makes its own keys. An app's pins have it, too. */

export const DEVELOPMENT_ORIGIN = 'localhost/callsign-dev'
