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

# The environment, from the pinned and hashed requirements. The tools that build it stay in this stage.
FROM ${PYTHON_IMAGE} AS environment
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source
COPY requirements/image.txt requirements/build.txt requirements/
RUN python3 -m venv /opt/tools \
    && python3 -m venv --without-pip /opt/foliot \
    && /opt/tools/bin/python -m pip install --require-hashes -r requirements/build.txt \
    && /opt/tools/bin/python -m pip --python /opt/foliot/bin/python install --no-compile --require-hashes -r requirements/image.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY tools/build_ui.py tools/bill_of_materials.py tools/
COPY ui/package-lock.json ui/
COPY src/ src/
COPY --from=ui /source/src/foliot/ui/dist/ src/foliot/ui/dist/
# The hook would build the UI again; it is here already. Compiled files have no timestamps, so that they are always the same.
RUN FOLIOT_WITHOUT_UI=1 /opt/tools/bin/hatchling build --target wheel --directory /tmp/wheel \
    && /opt/tools/bin/python -m pip --python /opt/foliot/bin/python install --no-compile --no-deps /tmp/wheel/*.whl \
    && /opt/foliot/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/foliot/lib \
    && mkdir -p /opt/foliot/share/foliot \
    && python3 -m tools.bill_of_materials /opt/foliot/share/foliot/sbom.cdx.json requirements/image.txt

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
