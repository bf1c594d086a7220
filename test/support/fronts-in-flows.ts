/**
 * The stories of `flows/` that run a second time, by servers with two fronts. The rest has its reasons here, but for the long ones
 * and those of nodes, which have fronts already.
 */

/** The ten in which a client could notice that several processes answer. */
export const WITH_FRONTS = [
  'call-story',
  'close-codes',
  'kill',
  'lookup-refusals',
  'public-files',
  'push-takeover',
  'sign-in-story',
  'stomp-calls',
  'stomp-drain',
  'stomp-js',
] as const

/** In the long size. */
export const WITH_FRONTS_LONG = [
  'app-port',
  'call-story-keys',
  'call-story-kill.long',
  'certificates',
  'chosen-call-id',
  'console',
  'development',
  'device-lists',
  'hostile-keys',
  'key-members',
  'media-gateway',
  'openapi',
  'passkeys',
  'register-and-verify',
  'reset',
  'stolen-code',
  'stomp-connections',
  'stomp-conformance',
  'stomp-hostile',
  'stomp-mutations.long',
  'stomp-py',
  'stomp-web-socket',
  'stranger-calls',
] as const

const AUDITS_FILES = 'the auditor reads a log that the test serves'
const STORE = 'about the store and the log, which the writer alone writes'
const PAGE = 'the page asks what console and call-story ask'
const GRPC = 'registrations by gRPC go to the writer'

export const WITHOUT_FRONTS: Readonly<Record<string, string>> = {
  attacks: 'device-lists has the lists with fronts; the apps here judge what any server answers',
  audit: AUDITS_FILES,
  'audit-caches': AUDITS_FILES,
  'audit-entry-form': AUDITS_FILES,
  'audit-forgeries': AUDITS_FILES,
  'audit-gossip': AUDITS_FILES,
  'audit-http': AUDITS_FILES,
  'audit-proofs': AUDITS_FILES,
  'audit-report': AUDITS_FILES,
  'application-restart': 'what a restart finds is in the store; kill and call-story-kill restart fronts',
  'audit-server': 'public-files and register-and-verify read the same files and proofs',
  'audit-state': AUDITS_FILES,
  'backup-restore': STORE,
  'by-hand': 'commands of call-story, typed by hand',
  'call-story-docs': 'looks at documents',
  circles: 'its second story has two fronts',
  client: 'verifies what register-and-verify looks up',
  'client-devices': 'verifies what register-and-verify looks up',
  'client-names': PAGE,
  'client-page': PAGE,
  'client-push': PAGE,
  'client-scan': PAGE,
  'client-passkeys': 'the page asks what passkeys asks',
  'client-trust': PAGE,
  'console-page': PAGE,
  crowd: 'starts its server with fronts already',
  delivery: 'mail, SMS and pushes leave from the writer',
  devices: 'sign-in-story and call-story register and remove devices',
  'disk-full': STORE,
  'docs-pages': PAGE,
  doctor: 'looks at settings, machine and services',
  export: 'its second story has two fronts',
  'file-modes': STORE,
  'first-call': 'the programs of pages make the calls of call-story',
  'foreign-files': STORE,
  fronts: 'starts its servers with fronts already',
  fsck: STORE,
  'go-sumdb': AUDITS_FILES,
  'head-file': STORE,
  'key-change': STORE,
  witnesses: 'its first story has two fronts',
  migrate: 'of nodes, which have fronts already',
  process:
    'settings, keys and refusals to start come before the fronts; kill and certificates stop and start them',
  protocol: 'the program of a page makes the calls of call-story',
  'sdk-page': 'the programs of the page ask what call-story asks',
  'python-grpc': GRPC,
  'register-refusals': GRPC,
  simulate: 'the simulator is a client like those of call-story and stomp-calls',
  'simulate-media': PAGE,
  'stomp-clock': 'a clock that is moved in one process alone',
  'stop-stages': 'its second story has fronts',
  'stomp-slow':
    'measures the memory of one process, and how soon a topic of the development surface tells its sender',
  suspension: 'starts its servers with fronts already',
  tampering: STORE,
  terminal: 'how a terminal shows the lines of one process',
  turn: 'talks to the relay',
  'user-tokens': 'its fourth story has fronts',
  webhooks: 'webhooks leave from the writer',
}
