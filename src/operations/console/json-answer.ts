/** Answers of the development surface: JSON, never cached. */

import type { HttpAnswer } from '../../transport/http.ts'

/** `json` is the text of the body. */
export function jsonAnswer(status: number, json: string): HttpAnswer {
  return { status, contentType: 'application/json; charset=utf-8', body: json, noStore: true }
}
