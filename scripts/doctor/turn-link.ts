/** One way to a relay: by UDP with repeats (RFC 8489, section 6.2.1), by TCP, or by TLS. */

import { createSocket } from 'node:dgram'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { messageBytes, parseAnswer, type StunAnswer } from './stun.ts'

export interface TurnAddress {
  readonly host: string
  readonly port: number
  readonly way: 'udp' | 'tcp' | 'tls'
}

export interface TurnLink {
  /** Rejects when no answer comes in time. */
  exchange(request: { readonly bytes: Buffer; readonly transactionId: Buffer }): Promise<StunAnswer>
  close(): void
}

export async function openTurnLink(address: TurnAddress): Promise<TurnLink> {
  return address.way === 'udp' ? udpLink(address) : streamLink(await connected(address))
}

function udpLink({ host, port }: TurnAddress): TurnLink {
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
  return {
    exchange: ({ bytes, transactionId }) =>
      within(TIMEOUT_MS, (resolve, reject) => {
        const send = () => socket.send(bytes, port, host, error => error && reject(error))
        const repeat = setInterval(send, REPEAT_MS)
        const onMessage = (answer: Buffer) => {
          const parsed = parseAnswer(answer, transactionId)
          if (parsed !== undefined) resolve(parsed)
        }
        socket.on('message', onMessage).once('error', reject)
        send()
        return () => {
          clearInterval(repeat)
          socket.off('message', onMessage).off('error', reject)
        }
      }),
    close: () => socket.close(),
  }
}

function streamLink(socket: Socket): TurnLink {
  let received = Buffer.alloc(0)
  return {
    exchange: ({ bytes, transactionId }) =>
      within(TIMEOUT_MS, (resolve, reject) => {
        const onData = (chunk: Buffer) => {
          received = Buffer.concat([received, chunk])
          const length = messageBytes(received)
          if (length === undefined || received.length < length) return
          const answer = parseAnswer(received.subarray(0, length), transactionId)
          received = received.subarray(length)
          if (answer === undefined) reject(new Error('not an answer of TURN'))
          else resolve(answer)
        }
        const onClose = () => reject(new Error('the relay closed the connection'))
        socket.on('data', onData).once('error', reject).once('close', onClose)
        socket.write(bytes)
        return () => socket.off('data', onData).off('error', reject).off('close', onClose)
      }),
    close: () => socket.destroy(),
  }
}

function connected({ host, port, way }: TurnAddress): Promise<Socket> {
  return within(TIMEOUT_MS, (resolve, reject) => {
    const name = isIP(host) === 0 ? { servername: host } : {}
    const socket: Socket =
      way === 'tls'
        ? connectTls({ host, port, ...name }, () => resolve(socket))
        : connectTcp({ host, port }, () => resolve(socket))
    socket.once('error', reject)
    return () => socket.off('error', reject)
  })
}

/** Runs `act` and, however it ends, what it returned. */
function within<Result>(
  timeoutMs: number,
  act: (resolve: (result: Result) => void, reject: (error: Error) => void) => () => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => end(() => reject(new Error('no answer'))), timeoutMs)
    const end = (settle: () => void) => {
      clearTimeout(timer)
      settle()
      // The result of `act` is not there yet when it settles at once.
      queueMicrotask(() => stop())
    }
    const stop = act(
      result => end(() => resolve(result)),
      error => end(() => reject(error)),
    )
  })
}

const TIMEOUT_MS = 5_000
const REPEAT_MS = 500
