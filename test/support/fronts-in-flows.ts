/**
 * The stories of `flows/` that the suite runs a second time, by servers with two fronts: a client could notice in them that
 * several processes answer. The rest has its reasons here, but for those
 * of nodes, which have fronts already.
 */

export const WITH_FRONTS = [
  'app-port',
  'call-story',
  'call-story-keys',
  'call-story-kill',
  'certificates',
  'close-codes',
  'console',
  'development',
  'kill',
  'lookup-refusals',
  'openapi',
  'public-files',
  'push-takeover',
  'register-and-verify',
  'reset',
  'sign-in-story',
  'stomp-calls',
  'stomp-conformance',
  'stomp-connections',
  'stomp-drain',
  'stomp-hostile',
  'stomp-js',
  'stomp-mutations',
  'stomp-py',
  'stomp-web-socket',
  'stranger-calls',
] as const

const AUDITS_FILES = 'the auditor reads a log that the test serves'
const STORE = 'about the store and the log, which the writer alone writes'
const PAGE = 'the page asks what console and call-story ask'
const GRPC = 'registrations by gRPC go to the writer'

export const WITHOUT_FRONTS: Readonly<Record<string, string>> = {
  audit: AUDITS_FILES,
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
  browser: 'verifies what register-and-verify looks up',
  'by-hand': 'commands of call-story, typed by hand',
  'call-story-docs': 'looks at documents',
  client: 'verifies what register-and-verify looks up',
  'client-devices': 'verifies what register-and-verify looks up',
  'client-page': PAGE,
  'console-page': PAGE,
  delivery: 'mail, SMS and pushes leave from the writer',
  devices: 'sign-in-story and call-story register and remove devices',
  'disk-full': STORE,
  'docs-pages': PAGE,
  doctor: 'looks at settings, machine and services',
  'durability-backup': STORE,
  'durability-disk-full': STORE,
  'durability-failed-disk': STORE,
  'durability-kill': STORE,
  'durability-page-flips': STORE,
  'durability-readers': STORE,
  'durability-slow-sync': STORE,
  'file-modes': STORE,
  'first-call': 'the program of a page makes the calls of call-story',
  'foreign-files': STORE,
  fronts: 'starts its servers with fronts already',
  fsck: STORE,
  'go-modules': AUDITS_FILES,
  'go-sumdb': AUDITS_FILES,
  'head-file': STORE,
  litewitness: 'as witnesses',
  witnesses: 'its first story has two fronts',
  migrate: 'of nodes, which have fronts already',
  process:
    'settings, keys and refusals to start come before the fronts; kill and certificates stop and start them',
  'python-grpc': GRPC,
  'register-refusals': GRPC,
  simulate: 'the simulator is a client like those of call-story and stomp-calls',
  'stomp-clock': 'a clock that is moved in one process alone',
  'stomp-slow':
    'measures the memory of one process, and how soon a topic of the development surface tells its sender',
  tampering: STORE,
  terminal: 'how a terminal shows the lines of one process',
  turn: 'talks to the relay',
}
