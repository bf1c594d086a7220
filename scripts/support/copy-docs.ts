/**
 * A step of the build: puts the files of Swagger UI beside the module that serves them, so that the built server needs
 * no package for its documentation.
 */

import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SWAGGER_UI_FILES, SWAGGER_UI_FOLDER } from '../../src/operations/console/docs.ts'

const from = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))
mkdirSync(SWAGGER_UI_FOLDER, { recursive: true })
for (const name of Object.keys(SWAGGER_UI_FILES))
  copyFileSync(join(from, name), join(SWAGGER_UI_FOLDER, name))
