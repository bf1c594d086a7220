/** Settings of short messages: the gateway, served countries, and budgets. */

import { faultOfOperatorUrl } from '../../delivery/operator-url.ts'
import { type SmsOptions, SmsSender } from '../../delivery/sms.ts'
import { isPhoneCountry } from '../../domain/accounts/phone.ts'
import {
  EVERY_COUNTRY,
  GLOBAL_CALLING_CODES,
  type ServedNumbers,
} from '../../domain/accounts/served-number.ts'
import type { SmsBudgets } from '../../domain/accounts/sms-budget.ts'
import { messageOf } from '../../errors.ts'
import type { EnvironmentReader } from './environment.ts'

export interface SmsSettings extends ServedNumbers {
  readonly smsRetrieverHash?: string
  readonly sms?: SmsOptions
  readonly smsBudgets: SmsBudgets
}

export function readSmsSettings(reader: EnvironmentReader): SmsSettings {
  const retrieverHash = reader.formed(
    'CALLSIGN_SMS_RETRIEVER_HASH',
    text => /^[A-Za-z0-9+/]{11}$/.test(text),
    'the 11 characters (base64) that Android finds the app by',
  )
  return {
    ...gateway(reader),
    ...(retrieverHash === undefined ? {} : { smsRetrieverHash: retrieverHash }),
    smsCountries: new Set(
      reader.list(
        'CALLSIGN_SMS_COUNTRIES',
        text => isCountry(text) || GLOBAL_CALLING_CODES.has(text) || text === EVERY_COUNTRY,
        'countries such as VN, global codes such as +870, or *',
      ),
    ),
    blockedCountries: new Set(reader.list('CALLSIGN_BLOCKED_COUNTRIES', isCountry, 'countries such as CU')),
    smsBudgets: {
      rangeHourly: reader.integer('CALLSIGN_SMS_RANGE_HOURLY', { usual: 30, ...MESSAGES }),
      networkHourly: reader.integer('CALLSIGN_SMS_NETWORK_HOURLY', { usual: 30, ...MESSAGES }),
      callingCodeHourly: reader.integer('CALLSIGN_SMS_CALLING_CODE_HOURLY', { usual: 200, ...MESSAGES }),
      daily: reader.integer('CALLSIGN_SMS_DAILY_BUDGET', { usual: 10_000, ...MESSAGES }),
    },
  }
}

function gateway(reader: EnvironmentReader): Pick<SmsSettings, 'sms'> {
  const url = reader.secret('CALLSIGN_SMS_URL', 'http or https address')
  const headers = reader.json('CALLSIGN_SMS_HEADERS', 'a JSON object of header names and values', stringsOf)
  const body = reader.text('CALLSIGN_SMS_BODY', 'template of the body')
  reader.refuseWithout('CALLSIGN_SMS_URL', ['CALLSIGN_SMS_HEADERS', 'CALLSIGN_SMS_BODY'])
  if (url === undefined) return {}
  const fault = faultOfOperatorUrl(url)
  if (fault !== undefined) {
    // Not the text: it may hold a password.
    reader.problems.push(`CALLSIGN_SMS_URL ${fault}`)
    return {}
  }
  const options: SmsOptions = {
    url,
    ...(headers === undefined ? {} : { headers }),
    ...(body === undefined ? {} : { body }),
  }
  try {
    new SmsSender(options)
  } catch (error) {
    reader.problems.push(`CALLSIGN_SMS_URL, CALLSIGN_SMS_HEADERS, CALLSIGN_SMS_BODY: ${messageOf(error)}`)
  }
  return { sms: options }
}

function stringsOf(value: unknown): Readonly<Record<string, string>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const areTexts = Object.values(value).every(each => typeof each === 'string')
  return areTexts ? (value as Readonly<Record<string, string>>) : undefined
}

function isCountry(text: string): boolean {
  return /^[A-Z]{2}$/.test(text) && isPhoneCountry(text)
}

const MESSAGES = { min: 0, max: 100_000_000, unit: 'messages' }
