#!/usr/bin/env node
/** Tries everything that a server with these settings needs, and says in one line each how that went: `doctor`. */

import { type DiagnosisOptions, diagnose } from './doctor/diagnosis.ts'
import type { Finding } from './doctor/finding.ts'
import { type Flags, optional, runCommand } from './support/command.ts'

const USAGE = `usage: node --env-file=callsign.env dist/scripts/doctor.js [--dev] [--config FILE] [--mail-to A] [--sms-to N] [--push-token T [--bundle-id B]] [--json]

Tries what a server with these settings needs: keys, store, head file, witnesses, disk, database, ports, certificates, public address, clock,
mail, SMS, push, relay, media gateway, identity providers. Writes nothing, and sends nothing but what is asked for. May run beside the
server; run it as the server's user.

  --config FILE     settings as the server takes them, besides the environment
  --dev             settings of a development server
  --mail-to A       sends a mail to this address
  --sms-to N        sends an SMS to this number (E.164), which may cost
  --push-token T    sends a push to this device; a hexadecimal one is Apple's
  --bundle-id B     the app that the device token is of (else the first of CALLSIGN_APPLE_APP_IDS)
  --json            prints lines of JSON: check, ok (null for what is not set), detail

Exit code: 0 nothing fails, 1 something does, 2 wrong usage.
`

async function doctor(flags: Flags): Promise<number> {
  const print = flags.json === true ? printJson : printReadable
  let isWell = true
  for await (const finding of diagnose(process.env, optionsOf(flags))) {
    isWell &&= finding.state !== 'fails'
    print(finding)
  }
  return isWell ? 0 : 1
}

function optionsOf(flags: Flags): DiagnosisOptions {
  const [mailTo, smsTo] = [optional(flags, 'mail-to'), optional(flags, 'sms-to')]
  const [pushToken, bundleId] = [optional(flags, 'push-token'), optional(flags, 'bundle-id')]
  return {
    dev: flags.dev === true,
    settingsFile: optional(flags, 'config'),
    ...(mailTo === undefined ? {} : { mailTo }),
    ...(smsTo === undefined ? {} : { smsTo }),
    ...(pushToken === undefined ? {} : { pushToken }),
    ...(bundleId === undefined ? {} : { bundleId }),
  }
}

function printReadable({ check, state, detail }: Finding): void {
  process.stdout.write(`${state.padEnd(6)} ${check.padEnd(CHECK_CHARS)} ${detail}\n`)
}

function printJson({ check, state, detail }: Finding): void {
  process.stdout.write(`${JSON.stringify({ check, ok: state === 'off' ? null : state === 'ok', detail })}\n`)
}

const CHECK_CHARS = 'sign in with apple'.length

await runCommand({
  name: 'doctor',
  usage: USAGE,
  flags: {
    dev: 'alone',
    config: 'value',
    'mail-to': 'value',
    'sms-to': 'value',
    'push-token': 'value',
    'bundle-id': 'value',
    json: 'alone',
  },
  run: doctor,
})
