/** `/docs/api`: sets up Swagger UI, which the page has loaded before, and says what screen readers need and it leaves out. */

declare const SwaggerUIBundle: (options: object) => void

const root = document.querySelector('#swagger-ui')!

const dark = matchMedia('(prefers-color-scheme: dark)')
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', followScheme)
followScheme()

function setAll(selector: string, name: string, value: string): void {
  for (const element of root.querySelectorAll(selector)) element.setAttribute(name, value)
}

new MutationObserver(() => {
  setAll('.information-container', 'role', 'region')
  setAll('.information-container', 'aria-label', 'About')
  setAll('h3.opblock-tag, .models > h4', 'aria-level', '2')
  setAll('.opblock h4', 'aria-level', '3')
  setAll('.opblock h5', 'aria-level', '4')
  setAll('.body-param__text', 'aria-label', 'Request body')
  setAll('.parameters-col_description select', 'aria-label', 'Value')
  setAll('select.content-type', 'aria-label', 'Media type')
  // Swagger UI calls each a region.
  setAll('.responses-table', 'role', 'table')
  setAll('pre', 'tabindex', '0')
}).observe(root, { childList: true, subtree: true })

SwaggerUIBundle({
  url: '/openapi.json',
  domNode: root,
  // Links to operations would lie within buttons.
  deepLinking: false,
  tryItOutEnabled: true,
  syntaxHighlight: { theme: 'tomorrow-night' },
  validatorUrl: null,
  // The document names the address that clients see; requests tried out here go to the page's own server.
  requestInterceptor: (request: { url: string }) => {
    const { pathname, search } = new URL(request.url, location.href)
    request.url = location.origin + pathname + search
    return request
  },
})
