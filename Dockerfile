# Node and Debian in both stages. Another base has to bring the same: apt, node, npm, and a user of id 1000.
ARG NODE_IMAGE=node:20.20.2-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY workers workers
COPY test/sim test/sim
COPY scripts/copy-page.mjs scripts/copy-page.mjs
# npm keeps the compiler, since a package names it as an optional peer. Declarations, source maps and manuals of packages are
# half of their size; licences stay.
RUN npm run build && npm prune --omit=dev && rm -rf node_modules/typescript node_modules/@typescript \
  && chmod 0755 dist/src/cli/bin.js \
  && find node_modules dist -type f ! -iname 'licen[cs]e*' \
    \( -name '*.map' -o -name '*.[cm]ts' -o -name '*.ts' -o -name '*.md' \) -delete

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
# tini is process 1 and hands signals on; node as process 1 would ignore them until it listens for them.
# /data/results is where results go; a new volume mounted there takes its owner and mode.
RUN apt-get update \
  && apt-get install -y --no-install-recommends 'tini=0.19.0-*' \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
  && install -d -o 1000 -g 1000 -m 0750 /data /data/results \
  && ln -s /app/dist/src/cli/bin.js /usr/local/bin/trawl
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# As a number, so that Kubernetes can tell that it is not root.
USER 1000:1000
EXPOSE 9464
STOPSIGNAL SIGTERM
# The port may be moved with TRAWL_HTTP__PORT; commands other than work have no health to ask for.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.TRAWL_HTTP__PORT || 9464}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "trawl"]
CMD ["work"]
