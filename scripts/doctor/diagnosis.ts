/** All findings of the doctor, in the order of its output. */

import { type Config, ConfigError, readConfig } from '../../src/server/settings/config.ts'
import { checkDatabase } from './database.ts'
import { type Check, type Finding, fails, ok, type Patient } from './finding.ts'
import { checkLog } from './log.ts'
import { checkMachine, judgeClock } from './machine.ts'
import { checkMail } from './mail.ts'
import { checkMedia } from './media.ts'
import { checkProviders } from './providers.ts'
import { checkApns, checkFcm, checkWebPush } from './push.ts'
import { checkRunning } from './running.ts'
import { checkSms } from './sms.ts'
import { checkTls } from './tls.ts'
import { checkTurn } from './turn.ts'
import { checkUserTokens } from './user-tokens.ts'
import { checkWitnesses } from './witnesses.ts'

export interface DiagnosisOptions extends Omit<Patient, 'config' | 'skews'> {
  /** Settings of a development server. */
  readonly dev: boolean
  /** The file of settings besides the environment. */
  readonly settingsFile: string | undefined
}

/** Wrong settings give only their faults. */
export async function* diagnose(
  environment: Readonly<Record<string, string | undefined>>,
  { dev, settingsFile, ...wishes }: DiagnosisOptions,
): AsyncGenerator<Finding> {
  const config = settings(environment, dev, settingsFile)
  if (config instanceof ConfigError) {
    for (const problem of config.problems) yield fails('settings', problem)
    return
  }
  const mode = config.isDevelopment ? 'development' : 'production'
  yield ok('settings', `${mode}; all of them are known and fit together`)
  const patient: Patient = { config, skews: [], ...wishes }
  const begun = CHECKS.map(check => examine(check, patient))
  for (const findings of begun) yield* await findings
  yield judgeClock(patient)
}

function settings(
  environment: Readonly<Record<string, string | undefined>>,
  dev: boolean,
  config: string | undefined,
): Config | ConfigError {
  try {
    return readConfig(environment, { dev, config })
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
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

const CHECKS: readonly Check[] = [
  checkLog,
  checkWitnesses,
  checkMachine,
  checkDatabase,
  checkRunning,
  checkTls,
  checkMail,
  checkSms,
  checkApns,
  checkFcm,
  checkWebPush,
  checkTurn,
  checkMedia,
  checkProviders,
  checkUserTokens,
]
