/**
 * Runs before tap in each test process, as `.taprc` says. Without it the runner has every module of a test, and of every
 * server that the test starts, pass through a loader thread which notes what was loaded, for `tap run --changed`: the
 * start of a server takes twice as long.
 */

import module from 'node:module'

const RECORDER = '@tapjs/processinfo'

module.register = new Proxy(module.register, {
  apply: (register, self, call) =>
    String(call[0]).includes(RECORDER) ? undefined : Reflect.apply(register, self, call),
})
Object.assign(globalThis, { [Symbol.for(`${RECORDER}.ProcessInfoNodeData`)]: { files: [] } })
// A test's child process is not a test.
delete process.env.NODE_OPTIONS
