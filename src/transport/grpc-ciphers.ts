/** The TLS ciphers of grpc-js, which takes them from its environment alone. Its own choice has CBC among those of TLS 1.2. */

export const GRPC_CIPHERS =
  process.env.GRPC_SSL_CIPHER_SUITES ??
  'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20'

process.env.GRPC_SSL_CIPHER_SUITES = GRPC_CIPHERS
