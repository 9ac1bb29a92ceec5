"""The small GAN of the example learns with each option of its search space."""

import json
import zlib
from pathlib import Path

import pytest

import nni
from tests.support.example_searches import ExampleSearch
from tests.support.scripts import Scripts, example_module, scripts

__all__ = ["scripts"]  # a fixture

FOLDER = "pix2pix"


def test_both_configurations_search_the_same_space() -> None:
    by_formula = ExampleSearch(FOLDER, "error").config
    trained = ExampleSearch(FOLDER, "error", "gan.yml").config

    assert trained.search_space == by_formula.search_space


def test_each_option_of_the_networks_makes_images() -> None:
    torch = pytest.importorskip("torch")
    networks = example_module(FOLDER, "gan_networks")
    search = ExampleSearch(FOLDER, "error")
    usual = search.trial["USUAL"] | {"ngf": 16, "ndf": 16}
    labels = torch.zeros(2, 4, 16, 16)

    for name in ("netG", "netD", "norm", "init_type"):
        for option in search.config.search_space[name]["_value"]:
            image = networks.make_generator(usual | {name: option})(labels)
            judged = networks.make_discriminator(usual | {name: option})(
                torch.cat([labels, image], dim=1)
            )
            assert image.shape == (2, 3, 16, 16)
            assert image.abs().max() <= 1
            assert judged.shape[:2] == (2, 1)


@pytest.mark.parametrize(
    ("changes", "pairs", "largest"),
    [
        ({"lr_policy": "linear"}, 80, 0.3),  # a grey image is wrong by 0.5
        ({"gan_mode": "wgangp", "lr_policy": "step", "netD": "pixel"}, 8, 1.0),
        ({"gan_mode": "vanilla", "lr_policy": "plateau", "netD": "n_layers"}, 8, 1.0),
        ({"netG": "resnet_9blocks", "lr_policy": "cosine", "norm": "instance"}, 8, 1.0),
    ],
)
def test_trained_generator_generates_images_by_its_checkpoint(
    scripts: Scripts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    pairs: int,
    largest: float,
) -> None:
    small = {"ngf": 16, "ndf": 16, "lr": 0.005} | changes
    monkeypatch.setattr(nni, "get_next_parameter", lambda: small)
    usual = ExampleSearch(FOLDER, "error").trial["USUAL"]
    configuration = tmp_path / "parameter.cfg"
    configuration.write_text(json.dumps({"parameters": usual | small}), "utf-8")

    trained = scripts("pix2pix/gan.py", "--pairs", pairs)
    generated = scripts(
        *("pix2pix/inference.py", "-c", "checkpoints", "-p", configuration),
        *("-d", "facades", "-o", "generated", "-n", 2),
    )

    assert (tmp_path / "checkpoints" / "latest_net_D.pth").is_file()
    final = float(trained.split("Final result:")[1].split()[0])
    assert final < largest
    assert float(generated.split()[-1]) == pytest.approx(final, abs=0.1)
    files = sorted((tmp_path / "generated").iterdir())
    assert [file.name for file in files] == ["0.png", "1.png"]
    content = files[0].read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    # Three images of 128 x 128 pixels side by side, and a byte before each line.
    assert len(zlib.decompress(content[41:-16])) == 128 * (3 * 128 * 3 + 1)
