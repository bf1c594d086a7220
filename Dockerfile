# syntax=docker/dockerfile:1 Two stages: one compiles with everything and then takes out everything that a server does
# not need; the rest is the image. It runs as a user without rights on a root file system that may be read-only: /data
# alone is written.
#
#   docker build -t callsign .
#   docker run --rm callsign keygen --origin kt.example.org/log
#
# deploy/compose.yaml runs it with its secrets and a relay.

FROM node:24-trixie-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build:server && npm run prune:production && find dist -name .tsbuildinfo -delete

FROM node:24-trixie-slim
LABEL org.opencontainers.image.title="Callsign" \
      org.opencontainers.image.description="A calling app's whole backend in one Node program, with a key transparency log its users can check" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist/src dist/src
COPY --from=build /build/dist/pages dist/pages
COPY --from=build /build/dist/joined dist/joined
COPY package.json LICENSE ./
COPY proto proto
# The folders belong to the user that the image comes with; a volume mounted there takes its owner from them.
RUN install -d -o node -g node -m 700 /data /head
ENV NODE_ENV=production \
    CALLSIGN_DATA_DIR=/data
# Compiled code, which Node takes from there for a user who started it before: a start costs a sixth less. From here on it is only read.
ENV NODE_COMPILE_CACHE=/app/dist/joined/compile-cache
RUN install -d -o node -g node -m 700 $NODE_COMPILE_CACHE
USER node
RUN data=$(mktemp -d) && CALLSIGN_DATA_DIR=$data CALLSIGN_FRONTS=1 timeout --preserve-status 10 \
    node --max-semi-space-size=16 dist/joined/scripts/callsign.js serve --dev >/dev/null && rm -r $data
VOLUME ["/data"]
# Public, gRPC, operators, server API. All but the first listen on the container's loopback unless their hosts are set.
EXPOSE 8080 50051 9090 9070
STOPSIGNAL SIGTERM
# Alive, not ready: a disk that is full is not mended by a restart.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.CALLSIGN_ADMIN_PORT || 9090}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node 24 would keep up to 128 MB for young objects, where Node 20 keeps 32.
ENTRYPOINT ["node", "--max-semi-space-size=16", "dist/joined/scripts/callsign.js"]
CMD ["serve"]
