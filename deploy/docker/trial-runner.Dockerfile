# The agent: docker build --file deploy/docker/trial-runner.Dockerfile .
# Trials can import only packages of the image: derive an image with those that yours need. Steps of
# compression jobs need --build-arg EXTRA=compression, which adds torch, safetensors, onnx and onnxruntime;
# models of architecture searches EXTRA=nas, which adds torch and Lightning. EXTRA=fleet is the image of the
# fleet: the compose file and the chart give it another command, and no root.
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/nni
# Packages of others by hash, before the sources, so that a change of these does not install them again;
# requirements.txt is made by ./dev pins. Secrets of the build, if given, are settings of pip and
# authorities of this network, of which the image keeps nothing.
COPY services/trial-runner/requirements.txt requirements.txt
COPY services/trial-runner/requirements-compression.txt requirements-compression.txt
COPY services/trial-runner/requirements-nas.txt requirements-nas.txt
COPY services/trial-runner/requirements-fleet.txt requirements-fleet.txt
ARG EXTRA=
RUN --mount=type=secret,id=pip-settings,target=/etc/pip.conf \
    --mount=type=secret,id=authority,target=/etc/ssl/certs/ca-certificates.crt \
    /opt/nni/bin/pip install --no-cache-dir --require-hashes \
        --requirement "requirements${EXTRA:+-$EXTRA}.txt"
COPY proto proto
COPY sdk sdk
COPY services/common services/common
COPY services/trial-runner services/trial-runner
RUN /opt/nni/bin/pip install --no-cache-dir --no-deps --no-build-isolation --no-index \
        ./proto ./sdk './services/common[s3]' './services/trial-runner[server]' \
    && /opt/nni/bin/pip uninstall --yes setuptools

FROM python:3.11-slim-bookworm
# tini reaps processes of trials that outlive the agent.
RUN apt-get update && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/*
# New volumes get the owner of these folders.
RUN groupadd --gid 65532 nni \
    && useradd --uid 65532 --gid 65532 --home-dir /var/lib/nni --no-create-home nni \
    && groupadd --gid 65533 nni-trial \
    && useradd --uid 65533 --gid 65533 --home-dir /var/lib/nni --no-create-home nni-trial \
    && install --directory --owner=nni --group=nni /var/lib/nni/state /var/lib/nni/nni-experiments \
    && install --directory --owner=nni --group=nni --mode=0700 /var/lib/nni/state/pool-secrets
COPY --from=build /opt/nni /opt/nni
ENV PATH=/opt/nni/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/nni \
    PYTHONDONTWRITEBYTECODE=1 \
    NNI_HOME=/var/lib/nni/state \
    NNI_RUNNER_GRPC=127.0.0.1:7503 \
    NNI_HEALTH=0.0.0.0:8081
# The entry point starts as root, reads the secrets, which only root can read, and becomes the service's
# user 65532. The service starts trials as user 65533; it needs SETUID, SETGID and KILL for that.
USER 0:0
WORKDIR /var/lib/nni
# A request to the service itself: no interpreter is started, and no secret is needed.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8081; printf 'HEAD /readyz HTTP/1.0\\r\\n\\r\\n' >&3; read -r -t 4 line <&3; [[ $line == *' 200 '* ]]"]
ENTRYPOINT ["tini", "--", "python", "-P", "-m", "svc_common.entry_point", "--user", "65532:65532", "--code-user", "65533:65533"]
CMD ["python", "-P", "-m", "svc_trial_runner"]
