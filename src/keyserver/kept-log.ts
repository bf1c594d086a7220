/**
 * The two logs of a server: its own, and the output log of its index. Both have their newest checkpoint outside the store, too, so that
 * a server refuses an older copy of the store. Names of files and settings, and words of sentences about them.
 */
export interface KeptLog {
  readonly what: string
  readonly units: string
  /** The setting of the key that signs it. */
  readonly keySetting: string
  /** Behind the value of `CALLSIGN_LOG_HEAD_FILE`. */
  readonly headFileSuffix: string
  /** In the data directory of a node. */
  readonly shownHeadFile: string
  /** In a data directory that was restored. */
  readonly markerFile: string
  /** The flag with the newest checkpoint that auditors or clients have. */
  readonly knownFlag: string
  /** Another way out, where there is one. */
  readonly orElse: string
}

export const KEY_LOG: KeptLog = {
  what: 'log',
  units: 'entries',
  keySetting: 'KT_PRIVATE_KEY',
  headFileSuffix: '',
  shownHeadFile: 'shown-head',
  markerFile: 'restored.json',
  knownFlag: '--known-checkpoint',
  orElse: '',
}

export const INDEX_LOG: KeptLog = {
  what: 'output log of the index',
  units: 'leaves',
  keySetting: 'KT_INDEX_PRIVATE_KEY',
  headFileSuffix: '.index',
  shownHeadFile: 'shown-index-head',
  markerFile: 'restored-index.json',
  knownFlag: '--known-index-checkpoint',
  orElse: '; or begin the index anew, with a new key in KT_INDEX_PRIVATE_KEY',
}
