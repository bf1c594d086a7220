/**
 * How the fronts of a machine come to have about as many sockets each. The kernel spreads new sockets over the fronts that
 * listen, and clients stay where they are; so after all fronts have died, the first that comes back has nearly every socket. It
 * lets them go a few at a time, at random, and each comes back to whichever front the kernel gives it to.
 */

/** A front among those that serve, as their parent knows them. */
export interface FrontLoad {
  readonly sockets: number
  /** Its own are among them. */
  readonly socketsOfAll: number
  readonly fronts: number
  /** Whether it let some go at the last look. */
  readonly isShedding: boolean
}

/** How many sockets the front lets go within the next second. */
export function socketsToShed({ sockets, socketsOfAll, fronts, isShedding }: FrontLoad): number {
  if (fronts < 2) return 0
  const ofOthers = (socketsOfAll - sockets) / (fronts - 1)
  if (!isShedding && (sockets < SOCKETS_MIN || sockets <= 2 * ofOthers)) return 0
  const excess = Math.floor(sockets - (SHED_TO * socketsOfAll) / fronts)
  return Math.max(0, Math.min(excess, Math.max(SHED_AT_ONCE, Math.ceil(SHED_SHARE * sockets))))
}

/** Fewer may all be at one front. */
const SOCKETS_MIN = 50
/** Times the average over all fronts. */
const SHED_TO = 1.25
const SHED_AT_ONCE = 10
/** However many there are, they have moved within some twenty minutes. */
const SHED_SHARE = 0.002
/** How often a front says how many sockets it has. */
export const LOAD_EVERY_MS = 1_000
