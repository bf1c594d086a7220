/** Hermes has no WebCrypto: the package brings one, over OpenSSL. */

import { install } from 'react-native-quick-crypto'

install()
