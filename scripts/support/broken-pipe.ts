/** Ends a command quietly when the reader of its output, such as `head`, has seen enough. */

/** Ends the process without a word; its exit code 2 says that it did not come to its end. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(2)
  })
}
