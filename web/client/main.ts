import { html, render } from 'lit-html'

render(html`<h1>Callsign</h1>`, document.querySelector('main')!)
