/**
 * Runs the files of a folder in one process, one after the other: for tests that leave nothing behind in their process.
 *
 *     node test/runner/folder.mjs NAME FILE ...
 */

import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { FILE_MARK } from './report.mjs'

// The library names folders of tests by all arguments.
const files = process.argv.splice(3)
const { default: t } = await import('tap')
for (const file of files) {
  // Comments and tests are printed in the order in which they were asked for.
  t.comment(FILE_MARK + relative(process.cwd(), file))
  await import(pathToFileURL(file).href)
}
