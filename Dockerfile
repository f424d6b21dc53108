# One image for every part: foliot up, server, scheduler, worker and migrate. Base images come from the builder's own registry settings.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
ARG NODE_IMAGE=node:22-bookworm-slim

# The web UI, from the pinned npm packages.
FROM ${NODE_IMAGE} AS ui
WORKDIR /source/ui
COPY ui/package.json ui/package-lock.json ui/.npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund
COPY ui/ ./
RUN node node_modules/vite/bin/vite.js build --logLevel warn

# The environment, from the pinned and hashed requirements.
FROM ${PYTHON_IMAGE} AS environment
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python3 -m venv /opt/foliot
WORKDIR /source
COPY requirements/image.txt requirements/
RUN /opt/foliot/bin/python -m pip install --require-hashes -r requirements/image.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY tools/build_ui.py tools/
COPY src/ src/
COPY --from=ui /source/src/foliot/ui/dist/ src/foliot/ui/dist/
# The hook would build the UI again; it is here already.
RUN FOLIOT_WITHOUT_UI=1 /opt/foliot/bin/python -m pip install --no-deps --no-build-isolation . \
    && /opt/foliot/bin/python -m compileall -q /opt/foliot/lib \
    && /opt/foliot/bin/python -m pip uninstall --yes hatchling editables pip

FROM ${PYTHON_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Foliot" \
      org.opencontainers.image.description="A distributed job scheduler on PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=environment /opt/foliot /opt/foliot
RUN groupadd --gid 10001 foliot \
    && useradd --uid 10001 --gid foliot --home-dir /data --no-create-home --shell /usr/sbin/nologin foliot \
    && install -d -o foliot -g foliot -m 0700 /data
ENV PATH=/opt/foliot/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    FOLIOT_DATA=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
# For the parts that serve HTTP. Workers, schedulers and migrations turn it off: they have no port.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('FOLIOT_PORT', '8000') + '/readyz', timeout=4)"]
ENTRYPOINT ["foliot"]
CMD ["up"]
