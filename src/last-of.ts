/**
 * The same function with its last argument and result remembered, for many calls in a row with one object. Departure
 * from a `WeakMap`: its values outlive garbage collections of short-lived objects.
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
