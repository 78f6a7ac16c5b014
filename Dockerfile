# The service with its production dependencies; the role is the argument:
#   docker run … bookmark-service api|worker|all|migrate|admin …
# Build with --build-arg VERSION=1.0.0 --build-arg REVISION=$(git rev-parse HEAD).
# The bases stand here by tag, for no registry could be asked for their digests where this was written. To pin them, take
# `docker buildx imagetools inspect node:26.10.0-trixie-slim --format '{{.Manifest.Digest}}'`, and the same of
# debian:trixie-slim, and append each as @sha256:….

FROM node:26.10.0-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY src/store/patches src/store/patches
# Packages' own scripts stay off (their native parts are optional and come prebuilt); ours patches the driver, and a
# start without that patch refuses. Source maps, declarations and documents never run: 34 of 84 MB.
RUN npm ci --omit=dev --ignore-scripts \
  && node_modules/.bin/patch-package --patch-dir src/store/patches --error-on-fail \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.?ts' -o -name '*.md' \) -delete
RUN npm sbom --package-lock-only --sbom-format cyclonedx --sbom-type application > all-components.json
COPY src src
COPY sql sql
# Compiled code: modules are loaded in 0.16 s instead of 0.30 s. Node keeps it by user id, so the one that will run.
ENV NODE_COMPILE_CACHE=/app/.compile-cache
RUN install -d -o 10001 -g 10001 "$NODE_COMPILE_CACHE"
USER 10001:10001
RUN node src/main.ts --help > /dev/null && test -n "$(ls "$NODE_COMPILE_CACHE")"

# Of the Node image only Node: npm and the headers would stay in the image below whatever is deleted above.
FROM debian:trixie-slim
# libatomic1 and libstdc++6 are what Node links to. tini is the first process: it passes signals on, collects orphans,
# and a SIGTERM that comes before the service has its handlers ends the service, which as process 1 would ignore it.
RUN apt-get update \
  && apt-get install -y --no-install-recommends libatomic1 libstdc++6 tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=build /usr/local/bin/node /usr/local/bin/node
# The modules are a layer of their own: a change of the code alone leaves it as it is, and is pushed as a few MB.
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/package.json /app/all-components.json /app/
COPY --from=build /app/sql /app/sql
COPY --from=build /app/src /app/src
COPY --from=build --chown=10001:10001 /app/.compile-cache /app/.compile-cache
WORKDIR /app
ARG VERSION=unversioned
ARG REVISION=unknown
# What the image is made of, for whoever scans it: modules, Node and Debian's packages. Read it by
# `docker run --entrypoint cat … /app/sbom.json`.
RUN node src/packing/sbom.ts --system < all-components.json > sbom.json
# What bookmarks_build_info and traces say.
RUN printf '{"version":"%s","revision":"%s"}\n' "$VERSION" "$REVISION" > build.json
# Without a password entry, and a number, so that Kubernetes can see that it is not root. Nothing is ever written to
# the file system: it may be read-only.
USER 10001:10001
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache HOST=0.0.0.0 PORT=3000
# Blocks so long go back to the system as they are freed: what a socket is read into, and parts of bodies (64 KiB). Left to
# itself glibc raises the bound to as much as 32 MiB with each longer block that is freed, and a replica keeps for good some
# 80 MiB of what an attack or a burst took. It costs nothing that can be measured (docs/performance.md).
ENV MALLOC_MMAP_THRESHOLD_=61440
EXPOSE 3000
LABEL org.opencontainers.image.title="Bookmark Service" \
  org.opencontainers.image.description="A hosted bookmark API: JSON over HTTP, incremental sync with long polling" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.base.name="debian:trixie-slim"
# Alive, not ready: an engine that restarts unhealthy containers must not do so because the database is away.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "node", "src/main.ts"]
CMD ["all"]
