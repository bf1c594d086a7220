/**
 * The bounds that more than one part of the server knows, or that hold for the whole process, each with its reason;
 * others stand with the thing they bound. Units go last in a name. `config.ts` has the bounds that an operator may
 * tune; these are part of the product.
 */

/** The range of ids that the server makes (`domain/ids.ts`), and of call ids that a client chooses. */
export const OWN_ID_MIN = 2n ** 32n
export const OWN_ID_END = 2n ** 53n

/** A request body; nothing but the call operations needs more (contract 8). */
export const BODY_BYTES_MAX = 16 * 1024
/** From a request's headers to the end of its body; the largest body takes four seconds at a megabit per second. */
export const BODY_DEADLINE_MS = 30_000
/** Answers that are made part by part, at once in one process: with `ANSWER_PART_BYTES_MAX` on its way for each, 8 MB. */
export const ANSWER_STREAMS_MAX = 128
/** A part between two processes; a longer one is sent as several. */
export const ANSWER_PART_BYTES_MAX = 64 * 1024
/** From a stream's beginning to its end: ten megabytes at 150 kilobits per second. A client that reads nothing for ten seconds is cut off before. */
export const ANSWER_STREAM_MS_MAX = 10 * 60_000
/** A path, before it is taken apart: the longest of ours has two names of 256 octets, three characters for each octet. */
export const PATH_CHARS_MAX = 2_048
/** A lookup of the most targets, each 88 base64 characters with its JSON around it, has 7 kB. */
export const LOOKUP_TARGETS_MAX = 64
/** JSON deeper than this is refused before it is parsed: no body of ours nests more than five levels. */
export const JSON_DEPTH_MAX = 32

/** Keys logged under one identity. Keeps a key history, which is answered whole, below two megabytes. */
export const KEYS_PER_DEVICE_MAX = 1_000
/** Registrations waiting for a batch; beyond it callers have to come back (Tessera's push-back default). */
export const APPENDS_WAITING_MAX = 4_096
/** Entries of one batch: one transaction stays below half a megabyte and a few milliseconds of hashing. */
export const BATCH_ENTRIES_MAX = 2_048
/** Batches being written at once: the next one is hashed while the last one waits for the disk. */
export const BATCHES_IN_FLIGHT_MAX = 2
/** How long a registration may wait for its durable checkpoint. A disk slower than this is a broken disk. */
export const APPEND_DEADLINE_MS = 10_000

/** VRF jobs waiting for a worker thread: about a second of work for one thread. */
export const VRF_JOBS_WAITING_MAX = 8_192
/** Tiles with their upper interior hashes in memory: 2 kB each, so 8 MB, which covers a million entries. */
export const TILE_INTERIORS_MAX = 4_096
/** Leaves whose entry and path lines are kept for lookups: two and a half kilobytes each, so 80 MB. */
export const LOOKUPS_KEPT_MAX = 32_768
/** Keys whose proof in the index is kept while its leaf is the last one: a kilobyte and a half each, so 25 MB. */
export const INDEX_LOOKUPS_KEPT_MAX = 16_384
/** Bundles with their gzip form in memory: about 26 kB each, so 26 MB. */
export const GZIP_BUNDLES_MAX = 1_024
/** A gRPC message. A Register with the longest key has 1.1 kB; more is read so that the refusal can name the rule. */
export const GRPC_MESSAGE_BYTES_MAX = 64 * 1024
/** gRPC calls at once on one connection; a client that wants more waits for some to end. */
export const GRPC_STREAMS_MAX = 256
/** From the head of a gRPC call to the end of its request, as for a body over HTTP. */
export const GRPC_REQUEST_DEADLINE_MS = 30_000
/** How long a gRPC connection may stay without a call; its client connects again for the next one. */
export const GRPC_CONNECTION_IDLE_MS = 5 * 60_000
/** How long a gRPC connection lasts before it is asked to end; calls that run are answered first. */
export const GRPC_CONNECTION_MS_MAX = 15 * 60_000
/** Addresses, users or pairs that one rate remembers; beyond it those counted longest ago are forgotten. */
export const RATE_KEYS_MAX = 100_000
/** From SIGTERM to exit: a supervisor kills after about as long. */
export const STOP_DEADLINE_MS = 10_000
/** The fronts' part of it. */
export const FRONT_STOP_MS = STOP_DEADLINE_MS / 2
/** Access tokens that were found genuine and are remembered: about 400 bytes each, so 26 MB. */
export const TOKENS_KEPT_MAX = 65_536
/** Sessions that were read and have not changed: about 500 bytes each, so 16 MB. */
export const SESSIONS_KEPT_MAX = 32_768
/**
 * Users with their own view in memory, as it is answered: a device's view has half a kilobyte, so 16 MB or somewhat
 * more.
 */
export const USER_VIEWS_KEPT_MAX = 16_384
/** Users with their unchanged devices in memory: about a kilobyte each, so 16 MB. */
export const DEVICE_LISTS_KEPT_MAX = 16_384
/** Device lists in a reply, at most a kilobyte each. */
export const DEVICE_LISTS_PER_PAGE = 64
/** Users whose name, number of devices and waiting requests were read and have not changed: 350 bytes each, so 23 MB. */
export const PEOPLE_KEPT_MAX = 65_536
/** From an ACK without a receipt until its commit begins: those of a call to many come within it. */
export const SETTLED_WITHIN_MS = 20

/** A STOMP command with its CR; UNSUBSCRIBE has 11 octets. An HTTP request or a TLS hello is refused here. */
export const COMMAND_BYTES_MAX = 16
/** A STOMP header line without its LF (contract 7.1): a token has less than one. */
export const HEADER_LINE_BYTES_MAX = 8 * 1024
/** Headers of a STOMP frame (contract 7.1); clients of this kind send fewer than ten. */
export const HEADERS_MAX = 64
/** A STOMP frame, command to NUL, which is not counted (contract 7.1): the keys of 32 people's devices fit. */
export const FRAME_BYTES_MAX = 256 * 1024
/** The same before a user has signed in: a token and two dozen headers fit, and strangers cost little. */
export const FRAME_BYTES_BEFORE_CONNECT_MAX = 16 * 1024
/** The heart-beat that we offer both ways, as stompjs does. */
export const HEART_BEAT_MS = 10_000
/** Bounds of a client's offer, and of our own beat: below, phones never sleep; above, routers forget. */
export const HEART_BEAT_MS_MIN = 1_000
export const HEART_BEAT_MS_MAX = 60_000

/** From the upgrade to a good CONNECT (contract 7.1), however slowly its octets dribble in. */
export const CONNECT_MS_MAX = 10_000
/** Subscriptions of one connection (contract 7.1); an app in a call has five. */
export const SUBSCRIPTIONS_MAX = 64
/** Messages sent and not acknowledged on one subscription, unless it asks for another number. */
export const UNACKNOWLEDGED_MAX = 32
/** The most it may ask for: half of what an inbox holds. */
export const PREFETCH_MAX = 256
/** Open transactions of one connection, frames in each, and octets of their headers and bodies in all of them. */
export const TRANSACTIONS_MAX = 16
export const TRANSACTION_FRAMES_MAX = 256
export const TRANSACTION_BYTES_MAX = 1024 * 1024
/** Frames of one connection (contract 7.1): an app that reconnects sends two dozen at once. */
export const FRAME_RATE = { count: 50, perMs: 1_000, burst: 200 } as const
/** Octets that came and that the session had no turn for: eight reads of a socket. More is no client's way to speak. */
export const UNREAD_BYTES_MAX = 16 * FRAME_BYTES_MAX
/** Live connections of one user (contract 8): as many as a user may have devices. */
export const CONNECTIONS_PER_USER_MAX = 10
/**
 * Unsent octets from which a connection gets no more from its inbox until they have left, however long that takes. Not
 * below `BACKLOG_BYTES`, of whose leaving a connection tells.
 */
export const UNSENT_BYTES_HELD = 64 * 1024
/** Unsent octets from which a connection lags, and how long it has to get below half. */
export const UNSENT_BYTES_LAGGING = 256 * 1024
export const LAG_MS_MAX = 10_000
/** Unsent octets at which a connection is closed as slow, while an ERROR still fits into what the transport takes. */
export const UNSENT_BYTES_MAX = 896 * 1024
/** Receivers of one broadcast in one turn. */
export const FAN_OUT_CHUNK = 500

/**
 * A WebSocket message. Twice a frame, because above it uWebSockets cuts the connection without a word, and a frame that
 * is too large is to be refused in words.
 */
export const WEBSOCKET_MESSAGE_BYTES_MAX = 2 * FRAME_BYTES_MAX
/** A WebSocket peer that is silent for so long, pings included, is gone. */
export const WEBSOCKET_IDLE_SECONDS = 60
/** Bytes of one connection that are worth a word when they have left: who waits with the next ones waits for less. */
export const BACKLOG_BYTES = 64 * 1024
/** Unsent bytes of one connection, and one frame more; its session has stopped sending at a quarter of it. */
export const BACKPRESSURE_BYTES_MAX = 1024 * 1024
/** Unsent bytes of all connections: a thousand sessions that were stopped. Beyond it the worst are closed. */
export const BUFFERED_BYTES_MAX = 256 * 1024 * 1024
/** How long a connection that ends waits for its last bytes to leave: a second of frames at a megabit per second. */
export const LINGER_MS = 3_000
/** Events that wait for endpoints of webhooks, unless the settings say another number. */
export const WEBHOOKS_WAITING_MAX = 1_000_000
