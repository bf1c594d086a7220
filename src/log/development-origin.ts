/** Names the log of each development server that makes its own keys. It stands alone, as the first bundle of the SDK has no more of the log. */
export const DEVELOPMENT_ORIGIN = 'localhost/callsign-dev'
