/** Shows calls while no page is open. */

importScripts('/callsign-service-worker.js')
callsign.handleCallPushes({ icon: '/icon.svg' })
