import { defineConfig, type Plugin } from 'vite'
import { server } from './src/pins.ts'

/** Where calls have their sound and picture: the gateway of the server, such as wss://media.example.org. */
const MEDIA = 'ws://127.0.0.1:*'
/** Add `frame-ancestors 'none'` as a header where the page is served: a page can't say it of itself. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "worker-src 'self' blob:",
  `connect-src 'self' ${server} ${server.replace(/^http/, 'ws')} ${MEDIA}`,
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')
/** Only built: Vite's own page for developers has inline styles. */
const policy: Plugin = {
  name: 'policy',
  apply: 'build',
  transformIndexHtml: () => [
    {
      tag: 'meta',
      attrs: { 'http-equiv': 'Content-Security-Policy', content: POLICY },
      injectTo: 'head-prepend',
    },
  ],
}

export default defineConfig({
  plugins: [policy],
  build: {
    rollupOptions: {
      input: ['index.html', 'service-worker.js'],
      // Browsers find the next version of a service worker by its name.
      output: {
        entryFileNames: ({ name }) => (name === 'service-worker' ? '[name].js' : 'assets/[name]-[hash].js'),
      },
    },
  },
})
