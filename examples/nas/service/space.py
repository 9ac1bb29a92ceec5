"""Space of small networks for the handwritten digits of scikit-learn."""

from torch import nn

import nni
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableDropout, MutableLinear


class DepthwiseSeparable(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs)
        self.pointwise = nn.Conv2d(inputs, outputs, 1)

    def forward(self, images):
        return self.pointwise(self.depthwise(images))


class DigitsSpace(ModelSpace):
    """2 convolutions x 3 rates of dropout x 3 widths: 18 networks for images of 8 x 8 pixels."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU())
        self.second = LayerChoice(
            {
                "convolution": nn.Conv2d(16, 32, 3, padding=1),
                "separable": DepthwiseSeparable(16, 32),
            },
            label="second",
        )
        self.pool = nn.Sequential(nn.ReLU(), nn.MaxPool2d(4), nn.Flatten())
        self.dropout = MutableDropout(nni.choice("dropout", [0.25, 0.5, 0.75]))
        width = nni.choice("width", [8, 32, 128])
        self.hidden = nn.Sequential(MutableLinear(128, width), nn.ReLU())
        self.head = MutableLinear(width, 10)

    def forward(self, images):
        features = self.pool(self.second(self.first(images)))
        return self.head(self.hidden(self.dropout(features)))
