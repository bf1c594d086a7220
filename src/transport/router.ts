/**
 * Which route serves a path (contract 1.1): its canonical path, the other spellings that a route carries, and
 * `/api/X` for every `/app/api/X` that has no route of its own. Later steps see the canonical route only.
 */

import { assert } from '../errors.ts'
import { PATH_CHARS_MAX } from '../limits.ts'
import type { HttpRoute } from './route.ts'

/** The route at a path. */
export interface Match {
  /** The canonical path, as the routes have it. */
  readonly path: string
  /** By method, HEAD among them where there is GET. */
  readonly targets: ReadonlyMap<string, Target>
  /** The values of the `{name}` segments, percent-decoded. */
  readonly params: readonly string[]
}

export interface Target {
  readonly route: HttpRoute
  /** When this spelling of the path became deprecated, in Unix seconds; undefined while it is not. */
  readonly deprecatedSince: number | undefined
}

/** One spelling of a path. */
interface Place extends Match {
  readonly segments: readonly string[]
  readonly targets: Map<string, Target>
}

export class Router {
  /** Spellings without a `{name}`, by path. */
  readonly #fixed = new Map<string, Place>()
  /** Routes with parameters, by path with `ANY` for each; the first match serves. */
  readonly #patterns = new Map<string, Place>()

  constructor(routes: readonly HttpRoute[]) {
    for (const route of routes) {
      this.#add(route, route.path, undefined)
      for (const path of route.aliases ?? []) this.#add(route, path, undefined)
      for (const { path, since } of route.deprecatedAliases ?? []) this.#add(route, path, since)
    }
  }

  /** Undefined where there is nothing. A trailing slash is dropped. */
  find(path: string): Match | undefined {
    const place = this.#fixed.get(path)
    if (place !== undefined) return place
    if (path.length > PATH_CHARS_MAX) return undefined
    const bare = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    return this.#findBare(bare) ?? (bare.startsWith('/api/') ? this.#findBare(`/app${bare}`) : undefined)
  }

  #findBare(path: string): Match | undefined {
    const place = this.#fixed.get(path)
    if (place !== undefined) return place
    const segments = path.split('/')
    for (const pattern of this.#patterns.values()) {
      const params = paramsOf(pattern.segments, segments)
      if (params !== undefined) return { path: pattern.path, targets: pattern.targets, params }
    }
    return undefined
  }

  #add(route: HttpRoute, spelling: string, deprecatedSince: number | undefined): void {
    const { targets } = this.#placeOf(spelling, route.path)
    assert(!targets.has(route.method), `two routes for ${route.method} ${spelling}`)
    const target = { route, deprecatedSince }
    targets.set(route.method, target)
    if (route.method === 'GET') targets.set('HEAD', target)
  }

  #placeOf(spelling: string, canonicalPath: string): Place {
    const segments = spelling.split('/').map(segment => (isParam(segment) ? ANY : segment))
    const key = segments.join('/')
    const places = segments.includes(ANY) ? this.#patterns : this.#fixed
    const known = places.get(key)
    if (known !== undefined) return known
    const place: Place = { path: canonicalPath, segments, targets: new Map(), params: NO_PARAMS }
    places.set(key, place)
    return place
  }
}

/** The canonical path with the values put back in, for links. */
export function fillPath(path: string, params: readonly string[]): string {
  let at = 0
  const fill = (segment: string) => (isParam(segment) ? encodeURIComponent(params[at++] ?? '') : segment)
  return path.split('/').map(fill).join('/')
}

/** The values of the pattern's parameters; undefined when the path has another form or a value that can't be decoded. */
function paramsOf(pattern: readonly string[], segments: readonly string[]): readonly string[] | undefined {
  if (pattern.length !== segments.length) return undefined
  for (let at = 0; at < pattern.length; at++) {
    if (pattern[at] === ANY ? segments[at] === '' : pattern[at] !== segments[at]) return undefined
  }
  try {
    return segments.filter((_, at) => pattern[at] === ANY).map(decodeURIComponent)
  } catch {
    return undefined
  }
}

function isParam(segment: string): boolean {
  return segment.startsWith('{') && segment.endsWith('}')
}

/** Stands for a `{name}` in a pattern: the two names that two methods give one segment may differ. */
const ANY = '{}'
const NO_PARAMS: readonly string[] = []
