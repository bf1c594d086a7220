#!/usr/bin/env node
/** Tries everything that a server with these settings needs, and says in one line each how that went: `doctor`. */

import { type Config, ConfigError, readConfig } from '../src/server/config.ts'
import { type Check, type Finding, fails, ok, type Patient } from './doctor/finding.ts'
import { checkLog } from './doctor/log.ts'
import { checkMachine, judgeClock } from './doctor/machine.ts'
import { checkMail } from './doctor/mail.ts'
import { checkMedia } from './doctor/media.ts'
import { checkProviders } from './doctor/providers.ts'
import { checkApns, checkFcm } from './doctor/push.ts'
import { checkRunning } from './doctor/running.ts'
import { checkSms } from './doctor/sms.ts'
import { checkTls } from './doctor/tls.ts'
import { checkTurn } from './doctor/turn.ts'
import { checkWitnesses } from './doctor/witnesses.ts'
import { type Flags, optional, runCommand } from './support/command.ts'

const USAGE = `usage: node --env-file=callsign.env dist/scripts/doctor.js [--dev] [--config FILE] [--mail-to A] [--sms-to N] [--push-token T [--bundle-id B]] [--json]

Tries what a server with these settings needs: keys, store, head file, witnesses, disk, ports, certificates, public address, clock,
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
  const config = settings(flags)
  if (config instanceof ConfigError) {
    for (const problem of config.problems) print(fails('settings', problem))
    return 1
  }
  const mode = config.isDevelopment ? 'development' : 'production'
  print(ok('settings', `${mode}; all of them are known and fit together`))
  const patient = patientOf(config, flags)
  const begun = CHECKS.map(check => examine(check, patient))
  let isWell = true
  const show = (finding: Finding) => {
    isWell &&= finding.state !== 'fails'
    print(finding)
  }
  for (const findings of begun) (await findings).forEach(show)
  show(judgeClock(patient))
  return isWell ? 0 : 1
}

function settings(flags: Flags): Config | ConfigError {
  try {
    return readConfig(process.env, { dev: flags.dev === true, config: optional(flags, 'config') })
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

function patientOf(config: Config, flags: Flags): Patient {
  const [mailTo, smsTo] = [optional(flags, 'mail-to'), optional(flags, 'sms-to')]
  const [pushToken, bundleId] = [optional(flags, 'push-token'), optional(flags, 'bundle-id')]
  return {
    config,
    skews: [],
    ...(mailTo === undefined ? {} : { mailTo }),
    ...(smsTo === undefined ? {} : { smsTo }),
    ...(pushToken === undefined ? {} : { pushToken }),
    ...(bundleId === undefined ? {} : { bundleId }),
  }
}

/** A check that fails unexpectedly must not hide the rest. */
async function examine(check: Check, patient: Patient): Promise<readonly Finding[]> {
  try {
    return await check(patient)
  } catch (error) {
    // Not its message: it may quote a setting.
    return [
      fails(
        check.name.replace(/^check/, '').toLowerCase(),
        `could not be tried (${error instanceof Error ? error.name : 'unknown'})`,
      ),
    ]
  }
}

function printReadable({ check, state, detail }: Finding): void {
  process.stdout.write(`${state.padEnd(6)} ${check.padEnd(CHECK_CHARS)} ${detail}\n`)
}

function printJson({ check, state, detail }: Finding): void {
  process.stdout.write(`${JSON.stringify({ check, ok: state === 'off' ? null : state === 'ok', detail })}\n`)
}

const CHECKS: readonly Check[] = [
  checkLog,
  checkWitnesses,
  checkMachine,
  checkRunning,
  checkTls,
  checkMail,
  checkSms,
  checkApns,
  checkFcm,
  checkTurn,
  checkMedia,
  checkProviders,
]
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
