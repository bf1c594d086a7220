/** Code for an app's start, for one server: its addresses, the log's keys to pin, and a first request. */

export type Language = 'typescript' | 'swift' | 'kotlin'

export interface Target {
  /** Such as `http://10.0.2.2:8080`. */
  readonly server: string
  readonly vkey: string
  readonly vrfPublicKey: string
}

export function snippetFor(language: Language, target: Target): string {
  return { typescript, swift, kotlin }[language](target)
}

/** Where STOMP is spoken. */
export function socketOf(server: string): string {
  return `${server.replace(/^http/, 'ws')}/ws`
}

function typescript({ server, vkey, vrfPublicKey }: Target): string {
  return `import { Client } from '@stomp/stompjs'

const SERVER = ${quoted(server)}
/** For LogClient of @callsign/sdk/client. An app has those of its production server built in. */
export const LOG = {
  vkey: ${quoted(vkey)},
  vrfPublicKey: ${quoted(vrfPublicKey)},
}

async function post(path: string, body: object, accessToken?: string) {
  const answer = await fetch(SERVER + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(accessToken && { authorization: \`Bearer \${accessToken}\` }),
    },
    body: JSON.stringify(body),
  })
  const reply = await answer.json()
  if (!answer.ok) throw new Error(\`\${reply.code}: \${reply.detail}\`)
  return reply
}

/** Signs in, registers this device, and connects. The code is on the console of the server. */
export async function start(email: string, askForCode: () => Promise<string>) {
  const { challengeId } = await post('/app/api/login', { email, displayName: email.split('@')[0] })
  const otp = await askForCode()
  const { accessToken } = await post('/app/api/verify-login', { challengeId, otp })

  const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits'])
  const spki = new Uint8Array(await crypto.subtle.exportKey('spki', keys.publicKey))
  const publicKey = btoa(String.fromCharCode(...spki))
  await post('/app/api/register_device', { publicKey }, accessToken)

  const client = new Client({
    brokerURL: ${quoted(socketOf(server))},
    // Random, or all apps come back at the same moment. docs/protocol/socket.md has the whole back-off.
    reconnectDelay: 1_000 + 9_000 * Math.random(),
    connectHeaders: { Authorization: \`Bearer \${accessToken}\` },
  })
  client.onConnect = () => {
    const headers = { ack: 'client-individual' }
    for (const queue of ['calls', 'contacts', 'account']) {
      client.subscribe(\`/user/queue/\${queue}\`, message => {
        console.log(JSON.parse(message.body))
        message.ack()
      }, headers)
    }
  }
  client.activate()
  return client
}
`
}

function swift({ server, vkey, vrfPublicKey }: Target): string {
  return `import CallsignApp
import CallsignVerify

// The package is Callsign's folder swift. Info.plist: NSAppTransportSecurity > NSAllowsLocalNetworking = YES
// on a phone, too: NSLocalNetworkUsageDescription
func makeCallsign(storage: any AppStorage) throws -> Callsign {
  // An app has the keys of its production server's log built in.
  let pins = try LogKeys.ofVerifierKey(
    ${quoted(vkey)},
    vrfPublicKey: ${quoted(vrfPublicKey)})
  return try Callsign(server: ${quoted(server)}, pins: pins, storage: storage)
}

/// The console of the server shows the code. On a phone the storage is KeychainAppStorage().
func signIn(_ me: Callsign, email: String, askForCode: @escaping @Sendable () async -> String) async throws -> User {
  try await me.signIn(email) { _ in await askForCode() }
}
`
}

function kotlin({ server, vkey, vrfPublicKey }: Target): string {
  const text = (value: string) => quoted(value).replaceAll('$', '\\$')
  return `import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.json.JSONObject

// The manifest of debug builds: android:usesCleartextTraffic="true", permission android.permission.INTERNET
object Callsign {
  const val SERVER = ${text(server)}
  const val SOCKET = ${text(socketOf(server))}
  // An app has those of its production server built in.
  const val VKEY = ${text(vkey)}
  const val VRF_PUBLIC_KEY = ${text(vrfPublicKey)}
}

private val http = OkHttpClient()

/** Asks for a code, which the console of the server shows. Not on the main thread. Next: POST /app/api/verify-login. */
fun requestCode(email: String): String {
  val body = JSONObject(mapOf("email" to email)).toString().toRequestBody("application/json".toMediaType())
  val request = Request.Builder().url(Callsign.SERVER + "/app/api/login").post(body).build()
  http.newCall(request).execute().use { response ->
    val reply = JSONObject(response.body!!.string())
    check(response.isSuccessful) { reply.getString("code") + ": " + reply.getString("detail") }
    return reply.getString("challengeId")
  }
}
`
}

/** JSON's strings are those of all three. */
function quoted(text: string): string {
  return JSON.stringify(text)
}
