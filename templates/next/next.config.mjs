/** Its own folder, whatever lies above it. */
export default { turbopack: { root: import.meta.dirname } }
