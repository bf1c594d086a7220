/** Runs at each start, also when a push starts the app without a screen. The order counts: the SDK needs `crypto`. */

import './src/crypto.ts'
import { AppRegistry } from 'react-native'
import { App } from './src/app.tsx'
import { listen } from './src/ringing.ts'

listen()
AppRegistry.registerComponent('MyPhoneApp', () => App)
