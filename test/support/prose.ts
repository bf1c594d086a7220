/**
 * Finds the turns of phrase that CONTRIBUTING.md asks writers to avoid, by plain patterns, in comments, test titles and
 * documents. As a program it prints each hit of a list with its line:
 *
 *     node dist/test/support/prose.js first|second [FOLDER_OR_FILE …]
 */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { PROJECT_ROOT } from './vectors.ts'

export interface ProseHit {
  /** Path from the project's folder. */
  readonly file: string
  /** One-based. */
  readonly line: number
  readonly phrase: string
}

/** Consecutive lines of prose; `lines[0]` stands on line `first` of its file. */
interface Passage {
  readonly first: number
  readonly lines: readonly string[]
}

const ROOTS = ['actors', 'bench', 'deploy', 'docs', 'proto', 'scripts', 'src', 'test', 'web']
const ROOT_DOCUMENTS = [
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'README.md',
  'SECURITY.md',
  'Dockerfile',
  '.ci/run',
]

/** A sentence starts a passage, a list item, a table cell or a heading, or follows the end of another sentence. */
const SENTENCE_START = String.raw`(?:^|[.!?:]["’”)]*\s+|\|\s+|\n\s*\n\s*|\n\s*(?:[-*#]+|\d+\.)\s+)\**`
const RULE_1 = new RegExp(
  `${SENTENCE_START}(?<phrase>Of|Who|What|Whoever|That|To be|In the place of)(?![\\w’'-])`,
  'g',
)
const RULE_2 = /(?<![\w-])(?<phrase>somebody|nobody|anybody|whoever|others|the one who)(?![\w-])/gi
const RULE_4 =
  /(?<![\w-])(?<phrase>of which|of whom|that of|(?:is|are) told|has \w+ (?:done|told|sent|asked|ended|deleted)|is over|as (?!well\b|soon\b|far\b|much\b|long\b|many\b)\w+ (?:\w+ )?has it|in a transaction)(?![\w-])/gi

const WORDS =
  /(?<![\w-])(?<phrase>meanwhile|from\s+now\s+on|by\s+now|so\s+(?:long|often)\s+as|another\s+one|of\s+which|each\s+of\s+them)(?![\w-])/gi
/** "A user whose session was ended": at most three words stand between. */
const WHOSE_IS = /(?<![\w-])(?<phrase>whose(?!\s+it\b)(?:\s+[\w’'-]+){1,3}?\s+(?:is|are|was|were))(?![\w-])/gi
/** A `what` whose verb stands right behind it, as in "sends what was asked for" and "waits for what comes next". */
const WHAT_AS_SUBJECT = new RegExp(
  `(?<![\\w-])(?<phrase>what\\s+(?:${[
    'is|are|was|were|has|had|does|can|could|may|must|would|answers|arrives|becomes|belongs|breaks|changes|comes|counts',
    'differs|disagrees|ends|fails|falls|fills|follows|goes|happens|lasts|leaves|lies|lives|makes|needs|opens|passes',
    'reads|remains|repeats|rests|rings|runs|says|shows|stands|surrounds|survives|takes|turns|waits|works|writes',
  ].join('|')}))(?![\\w’'-])`,
  'g',
)

const RULES = {
  /** Rules 1, 2 and 4 of CONTRIBUTING.md. */
  first: [RULE_1, RULE_2, RULE_4],
  /** Words that took the place of the first list's when that was counted. */
  second: [WORDS, WHOSE_IS, WHAT_AS_SUBJECT],
}
export type ProseList = keyof typeof RULES

const HASH_COMMENTS = new Set(['.yaml', '.yml', '.py', '.example', '.service', '.sh', '', '.rules'])
const SLASH_COMMENTS = new Set(['.ts', '.mjs', '.js', '.css', '.go', '.proto'])

export function findProseHits(list: ProseList, within: readonly string[] = []): ProseHit[] {
  const files = [...ROOT_DOCUMENTS, ...ROOTS.flatMap(filesBelow)]
  const wanted =
    within.length === 0 ? files : files.filter(file => within.some(path => file.startsWith(path)))
  return wanted.flatMap(file => hitsIn(list, file, readFileSync(join(PROJECT_ROOT, file), 'utf8')))
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(PROJECT_ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map(name => join(folder, name))
    .filter(name => !/node_modules|test\/vectors\/|(?:app|backend)\/wire\.ts|\.generated\./.test(name))
    .filter(name => statSync(join(PROJECT_ROOT, name)).isFile())
    .toSorted()
}

function hitsIn(list: ProseList, file: string, text: string): ProseHit[] {
  return passagesOf(file, text).flatMap(({ first, lines }) => {
    const prose = lines.join('\n')
    return RULES[list].flatMap(rule =>
      Array.from(prose.matchAll(rule), match => {
        const phrase = match.groups!.phrase!
        const at = match.index + match[0].lastIndexOf(phrase)
        return { file, line: first + prose.slice(0, at).split('\n').length - 1, phrase }
      }),
    )
  })
}

function passagesOf(file: string, text: string): Passage[] {
  const kind = extname(file)
  if (kind === '.md') return [documentOf(text)]
  if (SLASH_COMMENTS.has(kind))
    return [...blockComments(text), ...lineComments(text, /^\/\/+/), ...titles(file, text)]
  if (HASH_COMMENTS.has(kind)) return lineComments(text, /^#+/)
  return []
}

/** A document without its code, which keeps its lines, and without parts that are printed from the code. */
function documentOf(text: string): Passage {
  const blank = (code: string) => code.replaceAll(/[^\n]/g, '')
  return {
    first: 1,
    lines: text
      .replaceAll(/^```[\s\S]*?^```$/gm, blank)
      .replaceAll(/^<!-- printed: [\s\S]*?^<!-- end -->$/gm, blank)
      .replaceAll(/`[^`]*`/g, code => `_${blank(code)}`)
      .split('\n'),
  }
}

function blockComments(text: string): Passage[] {
  return Array.from(text.matchAll(/^[ \t]*\/\*[\s\S]*?\*\//gm), match => ({
    first: text.slice(0, match.index).split('\n').length,
    lines: match[0]
      .split('\n')
      .map(line => line.replace(/^\s*(?:\/\*+|\*(?!\/))?\s?/, '').replace(/\s*\*\/$/, '')),
  }))
}

function lineComments(text: string, mark: RegExp): Passage[] {
  const passages: { first: number; lines: string[] }[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const comment = line.trim()
    if (!mark.test(comment)) continue
    const last = passages.at(-1)
    const said = comment.replace(mark, '').trim()
    if (last !== undefined && last.first + last.lines.length === index + 1) last.lines.push(said)
    else passages.push({ first: index + 1, lines: [said] })
  }
  return passages
}

function titles(file: string, text: string): Passage[] {
  if (!file.endsWith('.test.ts')) return []
  return Array.from(text.matchAll(/\bt\.test\(\s*(['"`])([\s\S]*?)\1,/g), match => ({
    first: text.slice(0, match.index).split('\n').length,
    lines: match[2]!.replace(/^[\w -]+: /, '').split('\n'),
  }))
}

if (process.argv[1]?.endsWith('support/prose.js')) {
  const [list = '', ...within] = process.argv.slice(2)
  if (!isList(list)) throw new Error(`the list is ${Object.keys(RULES).join(' or ')}, not '${list}'`)
  const hits = findProseHits(list, within)
  for (const { file, line, phrase } of hits) {
    const text = readFileSync(join(PROJECT_ROOT, file), 'utf8').split('\n')[line - 1]!.trim()
    process.stdout.write(`${file}:${line}: ${phrase.replace('\n', ' ')}: ${text}\n`)
  }
  process.stdout.write(`${hits.length} hits\n`)
}

function isList(word: string): word is ProseList {
  return Object.hasOwn(RULES, word)
}
