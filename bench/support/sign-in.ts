/** Signs in over HTTP with addresses that have a fixed code. */

/** So many addresses with their codes, as `CALLSIGN_TEST_IDENTIFIERS` takes them. */
export function testIdentifiers(count: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`user${at}@bench.example`, '424242']))
}

/** The access token of a user, who is made by their first sign-in. */
export async function signIn(url: string, email: string, otp: string): Promise<string> {
  const { challengeId } = await post(`${url}/app/api/login`, { email })
  const { accessToken } = await post(`${url}/app/api/verify-login`, { challengeId, otp })
  if (accessToken === undefined) throw new Error('no access token came')
  return accessToken
}

async function post(url: string, body: object): Promise<Readonly<Record<string, string>>> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`)
  return JSON.parse(text)
}
