/**
 * The same function, which remembers its last argument and result: for what is asked with the same object many times in a
 * row. Departure from a `WeakMap`, whose values outlive the garbage collections of short-lived things.
 */
export function lastOf<Argument extends object, Result>(
  compute: (argument: Argument) => Result,
): (argument: Argument) => Result {
  let last: { readonly argument: Argument; readonly result: Result } | undefined
  return argument => {
    if (last?.argument !== argument) last = { argument, result: compute(argument) }
    return last.result
  }
}
