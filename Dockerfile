# The service with its production dependencies. The argument is the role:
#   docker run … bookmark-service api|worker|all|migrate|admin …
# Build with --build-arg VERSION=1.0.0 --build-arg REVISION=$(git rev-parse HEAD).
# The base images are named by tag. To pin them, append the digest of each as @sha256:… This command prints it:
#   docker buildx imagetools inspect node:26.10.0-trixie-slim --format '{{.Manifest.Digest}}'

FROM node:26.10.0-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY src/store/driver/patches src/store/driver/patches
# The packages' install scripts do not run, because native parts of the packages are optional and come prebuilt.
# patch-package patches the Postgres driver. The service does not start without that patch. Source maps, declarations
# and documents are never used at run time.
RUN npm ci --omit=dev --ignore-scripts \
  && node_modules/.bin/patch-package --patch-dir src/store/driver/patches --error-on-fail \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.?ts' -o -name '*.md' \) -delete
RUN npm sbom --package-lock-only --sbom-format cyclonedx --sbom-type application > all-components.json
COPY src src
COPY sql sql
# Precompiled code halves the time to load modules. Node keeps it separately for each user id, so the command that
# compiles runs as the user of the final image.
ENV NODE_COMPILE_CACHE=/app/.compile-cache
RUN install -d -o 10001 -g 10001 "$NODE_COMPILE_CACHE"
USER 10001:10001
RUN node src/main.ts --help > /dev/null && test -n "$(ls "$NODE_COMPILE_CACHE")"

# Copies only Node from its image. If that image were the base, npm and the headers would stay in its layers even if
# they were deleted here.
FROM debian:trixie-slim
# Node links to libatomic1 and libstdc++6. tini is process 1: it forwards signals and reaps orphans. As process 1,
# Node would ignore a SIGTERM that comes before the service has its handlers.
RUN apt-get update \
  && apt-get install -y --no-install-recommends libatomic1 libstdc++6 tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=build /usr/local/bin/node /usr/local/bin/node
# The node_modules have a layer of their own. So after a change of the code, only a few MB are pushed to a registry.
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/package.json /app/all-components.json /app/
COPY --from=build /app/sql /app/sql
COPY --from=build /app/src /app/src
COPY --from=build --chown=10001:10001 /app/.compile-cache /app/.compile-cache
WORKDIR /app
ARG VERSION=unversioned
ARG REVISION=unknown
# Lists the components of the image for scanners: modules, Node and Debian's packages.
# `docker run --entrypoint cat … /app/sbom.json` prints the list.
RUN node src/packing/sbom.ts --system < all-components.json > sbom.json
# The service shows this version in the metric bookmarks_build_info and in traces.
RUN printf '{"version":"%s","revision":"%s"}\n' "$VERSION" "$REVISION" > build.json
# The user is a number, so that Kubernetes can verify that it is not root. The service never writes to the file system,
# which may be read-only.
USER 10001:10001
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache HOST=0.0.0.0 PORT=3000
# glibc returns freed blocks of at least this size to the system. Buffers of sockets and chunks of bodies have 64 KiB.
# By default, glibc raises this size up to 32 MiB, and a replica would keep the memory of a burst or an attack. See
# docs/decisions/0095-where-nodes-time-goes.md.
ENV MALLOC_MMAP_THRESHOLD_=61440
EXPOSE 3000
LABEL org.opencontainers.image.title="Bookmark Service" \
  org.opencontainers.image.description="A hosted bookmark API: JSON over HTTP, incremental sync with long polling" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.base.name="debian:trixie-slim"
# Checks that the process is alive, but not that it is ready. If the database cannot be reached, a container engine must
# not restart the containers.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "node", "src/main.ts"]
CMD ["all"]
