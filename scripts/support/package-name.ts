/** Where texts name the package: imports of its parts. */

/** Matches each import of one of the package's `exports`, such as `name/app`, and no path that ends alike. */
export function specifierPattern(name: string, exports: readonly string[]): RegExp {
  const parts = exports.map(each => each.slice('./'.length)).filter(part => part !== 'package.json')
  return new RegExp(`(?<![@\\w/.-])${name}/(?:${parts.join('|')})(?![\\w-])`, 'g')
}
