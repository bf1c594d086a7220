/** The code of an error: for loops that count refusals and assert once. */

/** The code of what `act` throws, `'none'` when it throws nothing, `'other'` for an error without a code. */
export function codeOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code
    return typeof code === 'string' ? code : 'other'
  }
  return 'none'
}
