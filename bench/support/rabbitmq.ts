/**
 * RabbitMQ with its Web STOMP plugin, as a peer: a node of its own with its own data folder, name server and ports, all
 * on loopback. Configured to its advantage: logs errors only, and speaks no other protocol.
 */

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { BenchmarkContext } from './benchmark.ts'
import { findPeer, freePort, startPeer } from './peer.ts'
import type { Login } from './stomp-socket.ts'

export interface RabbitMq {
  /** With its version. */
  readonly name: string
  /** The process that does the work. */
  readonly pid: number
  /** The WebSocket's. */
  readonly port: number
  /** Every client's. */
  readonly login: Login
  collectGarbage(): Promise<void>
  /** Call it before the benchmark ends; it may be called again. */
  end(): Promise<void>
}

/** Starts it for the time of the benchmark; none when peers are not wanted or it is not installed. */
export async function openRabbitMq(context: BenchmarkContext): Promise<readonly RabbitMq[]> {
  const path = context.hasPeers ? findPeer(PACKAGE) : undefined
  if (path === undefined) return []
  const folder = mkdtempSync(join(context.folder, 'rabbitmq-'))
  const [port, namesPort, nodePort] = [await freePort(), await freePort(), await freePort()]
  const environment = writeNode(folder, port, namesPort, nodePort)
  const names = await startPeer({
    path: 'epmd',
    commandArguments: ['-port', String(namesPort), '-address', '127.0.0.1'],
    environment: {},
    logPath: join(folder, 'epmd.log'),
    port: namesPort,
  })
  const logPath = join(folder, 'start.log')
  const server = await startPeer({ path, commandArguments: [], environment, logPath, port })
  const end = async () => {
    await server.end()
    await names.end()
  }
  context.after(end)
  const rabbitMq: RabbitMq = {
    name: `RabbitMQ ${/rabbitmq_server-([\d.]+)/.exec(realpathSync(path))?.[1] ?? ''}`.trim(),
    pid: Number(readFileSync(join(folder, 'pid'), 'latin1')),
    port,
    login: LOGIN,
    async collectGarbage() {
      const control = join(dirname(path), 'rabbitmqctl')
      await promisify(execFile)(control, ['-n', NODE_NAME, 'eval', COLLECT], {
        env: { PATH: process.env.PATH, ...environment },
      })
    },
    end,
  }
  return [rabbitMq]
}

/** Writes its settings; returns the environment that points to them. */
function writeNode(
  folder: string,
  port: number,
  namesPort: number,
  nodePort: number,
): Readonly<Record<string, string>> {
  writeFileSync(
    join(folder, 'rabbitmq.conf'),
    [
      'listeners.tcp = none',
      'stomp.listeners.tcp = none',
      'web_stomp.tcp.ip = 127.0.0.1',
      `web_stomp.tcp.port = ${port}`,
      // Clients of the fan-out only listen for longer than the usual minute.
      `web_stomp.ws_opts.idle_timeout = ${3_600_000}`,
      'log.file.level = error',
      'log.console = false\n',
    ].join('\n'),
  )
  writeFileSync(join(folder, 'enabled_plugins'), '[rabbitmq_web_stomp].\n')
  return {
    // Where Erlang keeps its cookie.
    HOME: folder,
    ERL_EPMD_PORT: String(namesPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: NODE_NAME,
    RABBITMQ_CONF_ENV_FILE: join(folder, 'no-environment.conf'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'no-advanced.config'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    RABBITMQ_DIST_PORT: String(nodePort),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
  }
}

const PACKAGE = {
  name: 'RabbitMQ',
  paths: ['/usr/lib/rabbitmq/bin/rabbitmq-server'],
  aptPackage: 'rabbitmq-server',
}
const LOGIN = ['host:/', 'login:guest', 'passcode:guest']
const NODE_NAME = 'callsign-bench@localhost'
const COLLECT = '[garbage_collect(Process) || Process <- processes()], ok.'
