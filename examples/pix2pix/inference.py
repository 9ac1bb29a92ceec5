"""Generate images with the generator of a trial; write each beside its labels and the real one."""

import argparse
import json
from pathlib import Path

import torch
from gan_images import DATASETS, PALETTE, pairs, write_png
from gan_networks import make_generator

UNSEEN = 2
"""Seed of images that no training and no test has used."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--checkpoint", type=Path, required=True, help="folder checkpoints")
    parser.add_argument("-p", "--parameter-cfg", type=Path, required=True, help="parameter.cfg")
    parser.add_argument("-d", "--dataset", choices=list(DATASETS), default="facades")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the images")
    parser.add_argument("-n", "--count", type=int, default=8, help="number of images")
    options = parser.parse_args()

    parameters = json.loads(options.parameter_cfg.read_text("utf-8"))["parameters"]
    generator = make_generator(parameters)
    generator.load_state_dict(
        torch.load(options.checkpoint / "latest_net_G.pth", weights_only=True)
    )
    generator.eval()
    labels, images = pairs(options.dataset, options.count, UNSEEN)
    with torch.no_grad():
        generated = generator(labels)
    colours = PALETTE[labels.argmax(1)].permute(0, 3, 1, 2)
    options.output.mkdir(parents=True, exist_ok=True)
    for number, three in enumerate(zip(colours, generated, images, strict=True)):
        write_png(options.output / f"{number}.png", torch.cat(three, dim=2))
    error = (generated - images).abs().mean().item()
    print(f"{options.count} images in {options.output}: labels, generated, real; error {error:.4f}")


if __name__ == "__main__":
    main()
