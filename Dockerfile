# One image for web, worker and migrate (compose.yaml names their commands). Needs an external Postgres with pgvector.
FROM python:3.12-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements/base.txt /tmp/base.txt
# Fully resolved and pinned by hash, therefore without dependencies.
RUN /opt/venv/bin/pip install --no-deps --require-hashes -r /tmp/base.txt
COPY platform /app/platform
RUN PYTHONPATH=/app/platform /opt/venv/bin/python -m config.catalogs

FROM python:3.12-slim-bookworm
RUN useradd --system --user-group --uid 10001 --create-home --home-dir /home/groundwork --shell /usr/sbin/nologin groundwork \
    && install -d -o groundwork -g groundwork -m 0750 /data
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY manage.py ./
COPY --from=build /app/platform ./platform
COPY apps ./apps
COPY templates ./templates
COPY static ./static
COPY docs/guide ./docs/guide
COPY docs/screenshots ./docs/screenshots
# Else each start of a container would compile what it imports.
RUN /opt/venv/bin/python -m compileall -q apps platform
ENV PATH=/opt/venv/bin:$PATH \
    MALLOC_ARENA_MAX=2 \
    PYTHONPATH=/app:/app/platform \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=config.settings.prod \
    GROUNDWORK_DATA_DIR=/data \
    GROUNDWORK_LOG_FORMAT=json
USER groundwork
# Uploaded files, collected static files and the embedder's model.
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["python", "-m", "config.healthcheck"]
CMD ["python", "-m", "uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--timeout-graceful-shutdown", "3", "--no-access-log", "--no-server-header", "--ws", "none"]
