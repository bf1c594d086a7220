/**
 * Program: a STOMP client over TCP in a process of its own, which can be stopped and then neither reads nor closes
 * anything, as a phone without a network. Arguments: port and access token. It promises a beat each second and prints
 * CONNECTED once it has signed in.
 */

import { SocketClient } from './socket-client.ts'

const [, , port = '', token = ''] = process.argv
const { connected } = await SocketClient.connect('tcp', port, token, '1.2', 'heart-beat:1000,1000\n')
process.stdout.write(`${connected?.command}\n`)
