"""Generators and discriminators of a small conditional GAN for images of 16 x 16 pixels."""

import torch
from gan_images import COLOURS, KINDS
from torch import nn

NORMS = {"batch": nn.BatchNorm2d, "instance": nn.InstanceNorm2d, "none": nn.Identity}
BLOCKS = 9
STANDARD_DEVIATION = 0.02
"""Of the first weights where the kind of initialization has one."""


def down(inputs, outputs, norm):
    """Return layers that halve the side of an image."""
    convolution = nn.Conv2d(inputs, outputs, 4, stride=2, padding=1)
    return nn.Sequential(convolution, NORMS[norm](outputs), nn.LeakyReLU(0.2))


def up(inputs, outputs, norm):
    """Return layers that double the side of an image."""
    convolution = nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1)
    return nn.Sequential(convolution, NORMS[norm](outputs), nn.ReLU())


class UNet(nn.Module):
    """Three layers down and three up; each up reads the one down of its size, too."""

    def __init__(self, width, norm):
        super().__init__()
        # Of an image of 2 x 2 pixels an instance norm would leave little.
        self.downs = nn.ModuleList(
            [
                down(KINDS, width, norm),
                down(width, 2 * width, norm),
                down(2 * width, 4 * width, "none"),
            ]
        )
        self.ups = nn.ModuleList(
            [up(4 * width, 2 * width, norm), up(4 * width, width, norm), up(2 * width, width, norm)]
        )
        self.image = nn.Conv2d(width, COLOURS, 3, padding=1)

    def forward(self, labels):
        first = self.downs[0](labels)
        second = self.downs[1](first)
        found = self.ups[0](self.downs[2](second))
        found = self.ups[1](torch.cat([found, second], dim=1))
        found = self.ups[2](torch.cat([found, first], dim=1))
        return torch.tanh(self.image(found))


class Block(nn.Module):
    """Two convolutions and a connection around them."""

    def __init__(self, width, norm):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1),
            NORMS[norm](width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            NORMS[norm](width),
        )

    def forward(self, values):
        return values + self.layers(values)


def resnet(width, norm):
    blocks = [Block(2 * width, norm) for _ in range(BLOCKS)]
    image = nn.Conv2d(width, COLOURS, 3, padding=1)
    return nn.Sequential(
        down(KINDS, 2 * width, norm), *blocks, up(2 * width, width, norm), image, nn.Tanh()
    )


def patches(width, norm, layers):
    """Return a discriminator that judges patches, of which each layer doubles the side."""
    found, inputs = [], KINDS + COLOURS
    for number in range(layers):
        found.append(down(inputs, width * 2**number, norm if number else "none"))
        inputs = width * 2**number
    return nn.Sequential(*found, nn.Conv2d(inputs, 1, 3, padding=1))


def pixels(width, norm):
    """Return a discriminator that judges each pixel by itself."""
    return nn.Sequential(
        nn.Conv2d(KINDS + COLOURS, width, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 1),
        NORMS[norm](2 * width),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 1, 1),
    )


def initialize(network, kind):
    """Draw the weights of the convolutions anew, in one of four ways."""
    draw = {
        "normal": lambda weight: nn.init.normal_(weight, std=STANDARD_DEVIATION),
        "xavier": nn.init.xavier_normal_,
        "kaiming": nn.init.kaiming_normal_,
        "orthogonal": nn.init.orthogonal_,
    }[kind]
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            draw(module.weight)
            nn.init.zeros_(module.bias)
    return network


def make_generator(parameters):
    """Return the network that generates an image from labels; `ngf` is eight times its width."""
    make = {"unet_256": UNet, "resnet_9blocks": resnet}[parameters["netG"]]
    return initialize(make(parameters["ngf"] // 8, parameters["norm"]), parameters["init_type"])


def make_discriminator(parameters):
    """Return the network that judges labels with an image; `ndf` is eight times its width."""
    width, norm = parameters["ndf"] // 8, parameters["norm"]
    network = {
        "pixel": lambda: pixels(width, norm),
        "basic": lambda: patches(width, norm, layers=2),
        "n_layers": lambda: patches(width, norm, layers=3),
    }[parameters["netD"]]()
    return initialize(network, parameters["init_type"])
