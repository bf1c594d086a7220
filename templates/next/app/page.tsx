'use client'

import dynamic from 'next/dynamic'

// The keys of this device are in the browser, so the server has nothing to draw.
const App = dynamic(() => import('./app.tsx'), { ssr: false })

export default function Page() {
  return <App />
}
