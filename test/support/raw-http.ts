/** Speaks HTTP by hand: what a client library would not send, or would hide. */

import { connect, type Socket } from 'node:net'

/** Sends the text and resolves with the whole answer, once the connection has ended. */
export function sendRaw(port: number, text: string | Uint8Array): Promise<string> {
  return talk(port, socket => socket.write(text))
}

/** Lets `speak` use the connection and resolves with the whole answer, once the connection has ended. */
export function talk(port: number, speak: (socket: Socket) => void): Promise<string> {
  return new Promise(resolve => {
    let heard = ''
    const socket = connect(port, '127.0.0.1', () => speak(socket))
    socket.setEncoding('latin1').on('data', text => {
      heard += text
    })
    socket.on('error', () => {}).on('close', () => resolve(heard))
  })
}

/** The status codes of the answers in a text. */
export function statusesIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}
