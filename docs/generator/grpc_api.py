"""Reference page of the gRPC services, made from the proto files and their comments."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

from docs.generator.markdown import code, page, table

_PROTO: Final = Path(__file__).parents[2] / "proto"
_SERVICE_FIELD: Final = 6
"""Number of `service` in `FileDescriptorProto`: how comments name their place."""
_METHOD_FIELD: Final = 2
"""Number of `method` in `ServiceDescriptorProto`."""


def grpc_page() -> str:
    """Return the page: every service with its methods."""
    blocks = ["# gRPC reference", "Services and methods; messages are documented in `proto/`."]
    for file in _files():
        comments = {tuple(one.path): one.leading_comments for one in file.source_code_info.location}
        for index, service in enumerate(file.service):
            place = (_SERVICE_FIELD, index)
            rows = [
                [
                    code(method.name),
                    code(_type_text(method.input_type, streams=method.client_streaming)),
                    code(_type_text(method.output_type, streams=method.server_streaming)),
                    comments.get((*place, _METHOD_FIELD, number), ""),
                ]
                for number, method in enumerate(service.method)
            ]
            blocks += [
                f"## {file.package}.{service.name}",
                " ".join(comments.get(place, "").split()),
                table(["Method", "Request", "Response", "Meaning"], rows),
            ]
    return page(*blocks)


def _type_text(name: str, *, streams: bool) -> str:
    short = name.rpartition(".")[2]
    return f"stream {short}" if streams else short


def _files() -> Sequence[FileDescriptorProto]:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "all.pb"
        names = sorted(
            path.relative_to(_PROTO).as_posix() for path in _PROTO.glob("nni_proto/**/*.proto")
        )
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={_PROTO}",
                f"--proto_path={Path(protoc.__file__).parent / '_proto'}",
                f"--descriptor_set_out={output}",
                "--include_source_info",
                *names,
            ]
        )
        if status:
            raise RuntimeError(f"protoc ended with exit code {status}")
        return FileDescriptorSet.FromString(output.read_bytes()).file
