"""The notebooks of compression run to their end, with fewer epochs than a reader's."""

from tests.support.notebooks import Notebook
from tests.support.scripts import ROOT

FOLDER = ROOT / "examples" / "compression" / "notebooks"
FEWER_IMAGES = {"order[450:]": "order[1200:]"}
"""597 images for the training, of 1,347."""


def test_pipeline_prunes_removes_and_quantizes() -> None:
    shorter = {"EPOCHS, TUNING_EPOCHS = 12, 4": "EPOCHS, TUNING_EPOCHS = 2, 1"} | FEWER_IMAGES

    shown = [one for one in Notebook(FOLDER / "pipeline.ipynb", shorter).run() if one is not None]

    trained, pruned, masks, _masked, sizes, tuned, quantized, bits = shown
    assert pruned == {"0": (8, 16), "4": (16, 32), "8": (32, 64)}
    assert masks["0"] == 8 * 9
    # 16 and 32 channels and 64 neurons became 8, 16 and 32. Parameters of norms are not counted.
    remaining = (8 * 9 + 8) + (16 * 8 * 9 + 16) + (32 * 16 * 16 + 32) + (10 * 32 + 10)
    assert sizes[0][1] == remaining
    assert sizes[1][1] < 0.6 * sizes[1][0]
    assert sizes[2]
    assert bits == {"0": 8, "4": 8, "8": 8, "10": 8}
    for accuracy in (trained, tuned, quantized):
        assert accuracy > 40  # guessing gives 10


def test_mobilenet_loses_the_channels_that_depend_on_each_other() -> None:
    shorter = {"EPOCHS, TUNING_EPOCHS = 15, 8": "EPOCHS, TUNING_EPOCHS = 1, 1"} | FEWER_IMAGES

    cells = Notebook(FOLDER / "mobilenetv2.ipynb", shorter).run()
    shown = [one for one in cells if one is not None]

    trained, _layers, (before, after, is_same), _pruned, (teacher, student), loaded = shown
    assert is_same
    assert after[0] < before[0] / 2
    assert after[1] < before[1] / 2
    assert teacher == trained
    assert student > 15  # guessing gives 10; the notebook trains for longer
    assert loaded == student
