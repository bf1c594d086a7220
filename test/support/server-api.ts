/** The server API asked in process, as a backend with a key and as the operator's command. */

import { SERVER_OPERATIONS } from '../../src/api/server-api/operations.ts'
import { formatOperatorCredential, SCOPES, type Scope } from '../../src/domain/operators/server-key.ts'
import { formatBody, routeSender, type Send, type TestRequest, type TestWorld } from './application.ts'
import type { TestApi } from './test-api.ts'

export interface ServerApi {
  /** Without a token of its own, a request has a key of all scopes; one that no key may make is the operator's. */
  readonly send: Send
  /** A new key of these scopes. */
  readonly newKey: (scopes: readonly Scope[]) => Promise<string>
}

export async function openServerApi({
  world,
  application,
}: Pick<TestApi, 'world' | 'application'>): Promise<ServerApi> {
  const sendAs = routeSender(application.serverRoutes, SERVER_OPERATIONS)
  const newKey = async (scopes: readonly Scope[]) => {
    const create = { name: 'test', scopes }
    const { key } = await world.database.change(change => world.serverKeys.create(change, create))
    return key
  }
  const key = await newKey(SCOPES)
  return {
    newKey,
    send: (methodAndPath, request = {}) => {
      const token = isOfOperator(methodAndPath) ? operatorCredential(world, methodAndPath, request) : key
      return sendAs(methodAndPath, { token, ...request })
    },
  }
}

/** The credential that the operator's command would send with the request. Each is good once: the clock goes on. */
function operatorCredential(world: TestWorld, methodAndPath: string, { body }: TestRequest): string {
  const [method = '', target = ''] = methodAndPath.split(' ')
  const path = target.split('?')[0]!
  const bytes = Buffer.from(body === undefined ? '' : formatBody(body))
  world.tick(1_000)
  return formatOperatorCredential(world.secrets.operatorCommand, { method, path, body: bytes }, world.nowMs())
}

function isOfOperator(methodAndPath: string): boolean {
  const [method, path = ''] = methodAndPath.split(/[ ?]/)
  return SERVER_OPERATIONS.some(operation => {
    const form = new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    return operation.method === method && operation.access === 'operator' && form.test(path)
  })
}
