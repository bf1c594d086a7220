/**
 * What a share link shows to people without the app, and how phones learn that the app opens it (contract 3.1). The page
 * knows no token from another: it names nobody, so that a preview of the link tells nothing.
 */

import { createHash } from 'node:crypto'
import { parseShareToken } from '../../domain/contacts/share-token.ts'
import type { HttpAnswer, HttpRoute } from '../../transport/route.ts'

export interface LandingSettings {
  /** The app's name on the page. */
  readonly appName: string
  /** The app's own URL scheme, such as `callsign`. */
  readonly deepLinkScheme: string
  /** `<team id>.<bundle id>` of each app that opens share links; empty for none. */
  readonly appleAppIds: readonly string[]
  readonly androidApps: readonly AndroidApp[]
  /** The apps then use the passkeys of this server. */
  readonly passkeys?: object | undefined
  /** The page then leads to the development server's client in the browser, too. */
  readonly isDevelopment?: boolean
}

export interface AndroidApp {
  readonly packageName: string
  /** SHA-256 of a certificate that the app is signed with: hexadecimal with colons between the bytes. */
  readonly fingerprint: string
}

export function landingRoutes(settings: LandingSettings): readonly HttpRoute[] {
  const { appleAppIds, androidApps, passkeys } = settings
  const arePasskeysOn = passkeys !== undefined
  const routes: HttpRoute[] = [
    { method: 'GET', path: '/c/{token}', handle: ({ params }) => landingPage(settings, params[0] ?? '') },
  ]
  if (appleAppIds.length > 0)
    routes.push(wellKnown('apple-app-site-association', appleAssociation(appleAppIds, arePasskeysOn)))
  if (androidApps.length > 0)
    routes.push(wellKnown('assetlinks.json', assetLinks(androidApps, arePasskeysOn)))
  return routes
}

/** Every text that could be a token has the same page; any other is a link that was cut on its way. */
function landingPage(settings: LandingSettings, token: string): HttpAnswer {
  return parseShareToken(token) === undefined
    ? page(404, settings, CUT_LINK)
    : page(200, settings, invitation(settings, token))
}

/** A token has no character that means something in HTML or in a URL. */
function invitation({ appName, deepLinkScheme, isDevelopment }: LandingSettings, token: string): string {
  const name = escapeHtml(appName)
  const inBrowser = isDevelopment
    ? `<p><a href="/dev/client#c=${token}">Open in the browser</a> (development only)</p>\n`
    : ''
  return `<h1>You are invited to ${name}</h1>
<p>Somebody wants to be your contact. Open this link on the phone that has the app.</p>
<p><a href="${escapeHtml(deepLinkScheme)}://c/${token}">Open in ${name}</a></p>
<p>If nothing happens, install ${name} first and come back to this page.</p>
${inBrowser}`
}

function page(status: number, { appName }: LandingSettings, main: string): HttpAnswer {
  const name = escapeHtml(appName)
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<meta property="og:title" content="${name}">
<meta property="og:description" content="An invitation to ${name}">
<title>${name}</title>
<link rel="icon" type="image/svg+xml" href="/favicon.ico">
<style>${STYLE}</style>
<main>
${main}</main>
</html>
`
  return { status, contentType: 'text/html; charset=utf-8', body, headers: PAGE_HEADERS }
}

/** developer.apple.com, "Supporting associated domains". `webcredentials` lets the apps use passkeys of the domain. */
function appleAssociation(appIDs: readonly string[], arePasskeysOn: boolean): object {
  const components = [{ '/': '/c/*', comment: 'share links' }]
  const links = { applinks: { details: [{ appIDs, components }] } }
  return arePasskeysOn ? { ...links, webcredentials: { apps: appIDs } } : links
}

/** developers.google.com, "Digital Asset Links". */
function assetLinks(apps: readonly AndroidApp[], arePasskeysOn: boolean): object {
  const relation = ['delegate_permission/common.handle_all_urls']
  if (arePasskeysOn) relation.push('delegate_permission/common.get_login_creds')
  return apps.map(({ packageName, fingerprint }) => ({
    relation,
    target: { namespace: 'android_app', package_name: packageName, sha256_cert_fingerprints: [fingerprint] },
  }))
}

function wellKnown(name: string, value: object): HttpRoute {
  const answer = {
    status: 200,
    contentType: 'application/json',
    body: JSON.stringify(value),
    headers: [['Cache-Control', 'public, max-age=3600']] as const,
  }
  return { method: 'GET', path: `/.well-known/${name}`, handle: () => answer }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

const CUT_LINK = `<h1>This link is not whole</h1>
<p>A part of it was lost on its way. Ask for it once more, and open all of it.</p>
`
const STYLE =
  'body{font:1.1rem/1.5 system-ui,sans-serif;margin:0;color:#111;background:#fff}' +
  'main{max-width:32rem;margin:15vh auto;padding:0 1.5rem}' +
  'a{display:inline-block;padding:.6rem 1.2rem;border-radius:.5rem;background:#111;color:#fff;text-decoration:none}'
const POLICY =
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; img-src 'self'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const PAGE_HEADERS = [
  ['Content-Security-Policy', POLICY],
  // The page has the token in it, and so does its address, which no search engine is to show.
  ['Cache-Control', 'no-store'],
  ['X-Robots-Tag', 'noindex'],
] as const
