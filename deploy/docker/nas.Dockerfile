# The NAS service: docker build --file deploy/docker/nas.Dockerfile .
# Strategies need torch: --build-arg EXTRA=nas installs it with what evaluators of Lightning need. Or derive
# an image with the build of torch that you have, and with packages that your spaces import.
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/nni
# Packages of others by hash, before the sources, so that a change of these does not install them again;
# requirements.txt is made by ./dev pins. Secrets of the build, if given, are settings of pip and
# authorities of this network, of which the image keeps nothing.
COPY services/nas/requirements.txt requirements.txt
COPY services/nas/requirements-nas.txt requirements-nas.txt
ARG EXTRA=
RUN --mount=type=secret,id=pip-settings,target=/etc/pip.conf \
    --mount=type=secret,id=authority,target=/etc/ssl/certs/ca-certificates.crt \
    /opt/nni/bin/pip install --no-cache-dir --require-hashes \
        --requirement "requirements${EXTRA:+-$EXTRA}.txt"
COPY proto proto
COPY sdk sdk
COPY services/common services/common
COPY services/nas services/nas
RUN /opt/nni/bin/pip install --no-cache-dir --no-deps --no-build-isolation --no-index \
        ./proto './sdk[hpo]' './services/common[s3]' './services/nas[server]' \
    && /opt/nni/bin/pip uninstall --yes setuptools

FROM python:3.11-slim-bookworm
# New volumes get the owner of these folders.
RUN groupadd --gid 65532 nni \
    && useradd --uid 65532 --gid 65532 --home-dir /var/lib/nni --no-create-home nni \
    && groupadd --gid 65530 nni-strategy \
    && useradd --uid 65530 --gid 65530 --home-dir /var/lib/nni --no-create-home nni-strategy \
    && install --directory --owner=nni --group=nni /var/lib/nni/state /var/lib/nni/nni-experiments
COPY --from=build /opt/nni /opt/nni
ENV PATH=/opt/nni/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/nni \
    PYTHONDONTWRITEBYTECODE=1 \
    NNI_HOME=/var/lib/nni/state \
    NNI_NAS_GRPC=0.0.0.0:7505 \
    NNI_HEALTH=0.0.0.0:8081
# The entry point starts as root, reads the secrets, which only root can read, and becomes the service's
# user 65532. The service starts strategies as user 65530; it needs SETUID, SETGID and KILL for that.
USER 0:0
WORKDIR /var/lib/nni
EXPOSE 7505
# A request to the service itself: no interpreter is started, and no secret is needed.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8081; printf 'HEAD /readyz HTTP/1.0\\r\\n\\r\\n' >&3; read -r -t 4 line <&3; [[ $line == *' 200 '* ]]"]
ENTRYPOINT ["python", "-P", "-m", "svc_common.entry_point", "--user", "65532:65532", "--code-user", "65530:65530"]
CMD ["python", "-P", "-m", "svc_nas"]
