# The manager: docker build --file deploy/docker/manager.Dockerfile .
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/nni
# Packages of others by hash, before the sources, so that a change of these does not install them again;
# requirements.txt is made by ./dev pins. Secrets of the build, if given, are settings of pip and
# authorities of this network, of which the image keeps nothing.
COPY services/manager/requirements.txt requirements.txt
RUN --mount=type=secret,id=pip-settings,target=/etc/pip.conf \
    --mount=type=secret,id=authority,target=/etc/ssl/certs/ca-certificates.crt \
    /opt/nni/bin/pip install --no-cache-dir --require-hashes --requirement requirements.txt
COPY proto proto
COPY services/common services/common
COPY services/manager services/manager
RUN /opt/nni/bin/pip install --no-cache-dir --no-deps --no-build-isolation --no-index \
        ./proto './services/common[s3]' './services/manager[server]' \
    && /opt/nni/bin/pip uninstall --yes setuptools

FROM python:3.11-slim-bookworm
# New volumes get the owner of these folders.
RUN groupadd --gid 65532 nni \
    && useradd --uid 65532 --gid 65532 --home-dir /var/lib/nni --no-create-home nni \
    && install --directory --owner=nni --group=nni /var/lib/nni/state /var/lib/nni/nni-experiments \
    && install --directory --owner=nni --group=nni --mode=0700 /var/lib/nni/state/pool-secrets
COPY --from=build /opt/nni /opt/nni
ENV PATH=/opt/nni/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/nni \
    PYTHONDONTWRITEBYTECODE=1 \
    NNI_HOME=/var/lib/nni/state \
    NNI_MANAGER_GRPC=0.0.0.0:7501 \
    NNI_MANAGER_HTTP=0.0.0.0:8080 \
    NNI_STOP_ON_TERM=no \
    NNI_HEALTH=0.0.0.0:8081
USER 65532:65532
WORKDIR /var/lib/nni
EXPOSE 7501 8080
# A request to the service itself: no interpreter is started, and no secret is needed.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8081; printf 'HEAD /readyz HTTP/1.0\\r\\n\\r\\n' >&3; read -r -t 4 line <&3; [[ $line == *' 200 '* ]]"]
# Secrets come from files, never from the environment.
ENTRYPOINT ["python", "-P", "-m", "svc_common.entry_point"]
CMD ["python", "-P", "-m", "svc_manager"]
