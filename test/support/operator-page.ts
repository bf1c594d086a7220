/** The operators' page as tests use it: a moderator with a key, and the page's faults by axe-core. */

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import type { OpenServer } from './server.ts'
import { serverKeyCommand } from './server-keys.ts'

/** Every scope that the page has a view for. */
const MODERATOR = ['console', 'reports', 'users', 'calls', 'audit']

/** A moderator's key, as its operator makes it. */
export function newModerator(
  dataFolder: string,
  server: OpenServer,
  scopes: readonly string[] = MODERATOR,
): Promise<string> {
  const named = ['--name', 'moderation', '--person', 'Mara']
  return serverKeyCommand(dataFolder, server, 'create', ...named, '--scopes', scopes.join(','))
}

/** Opens the page at a place, and signs in. */
export async function signInAs(page: Page, server: OpenServer, key: string, place = ''): Promise<void> {
  await page.goto(`${server.serverApi}/operator${place}`)
  await giveKey(page, key)
  await page.getByRole('button', { name: 'Sign out', exact: true }).waitFor()
}

export async function giveKey(page: Page, key: string): Promise<void> {
  await page.getByLabel('Your key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** The page's faults by axe-core, as `<rule>: <element>`. */
export async function faultsOf(page: Page): Promise<string[]> {
  // Evaluated from outside, it needs no leave of the page's own policy.
  await page.evaluate(AXE)
  return page.evaluate(RUN)
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RUN = `axe.run().then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`
