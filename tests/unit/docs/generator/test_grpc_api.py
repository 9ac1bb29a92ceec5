from docs.generator.grpc_api import grpc_page
from nni_proto.experiment.v1 import experiment_service_pb2


def test_page_has_every_method_of_a_service() -> None:
    page = grpc_page()

    (service,) = experiment_service_pb2.DESCRIPTOR.services_by_name.values()
    assert f"## {service.full_name}" in page
    assert [one.name for one in service.methods if f"| `{one.name}` |" not in page] == []


def test_stream_is_named() -> None:
    assert "| `stream " in grpc_page()
