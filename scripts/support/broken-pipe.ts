/** What a command does when whoever reads its output has seen enough, as `head` does. */

/** Ends the process without a word; its exit code 2 says that it did not come to its end. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(2)
  })
}
