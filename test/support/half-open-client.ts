/**
 * A STOMP client over TCP as a process of its own, which can be stopped and then neither reads nor closes anything, as
 * a phone without a network. Arguments: port and access token. It promises a beat each second and prints each frame's
 * command.
 */

import { connect } from 'node:net'

const [, , port = '', token = ''] = process.argv
const socket = connect(Number(port), '127.0.0.1')
socket.write(`CONNECT\naccept-version:1.2\nheart-beat:1000,1000\nAuthorization:Bearer ${token}\n\n\0`)
socket.on('data', bytes => process.stdout.write(`${String(bytes).split('\n')[0]}\n`))
