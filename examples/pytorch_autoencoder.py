"""The autoencoder notebook in PyTorch: a convolutional autoencoder learns digits, once with pixels from 0 to 1, once with the bytes
that images are made of. trialscan says what went wrong, and where the two part.
Usage: python3 examples/pytorch_autoencoder.py [DIRECTORY]
"""
import pathlib, sys
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
import trialscan
from digits import digits

directory = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "autoencoder")
(images, _), (unseen, unseen_classes) = digits(1280, seed=1), digits(200, seed=2)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0, self.relu0 = nn.Conv2d(1, 8, 4, stride=2, padding=1), nn.ReLU()
        self.conv1, self.relu1 = nn.Conv2d(8, 8, 4, stride=2, padding=1), nn.ReLU()
        self.bottleneck = nn.Linear(8 * 7 * 7, 20)
        self.dense, self.relu2 = nn.Linear(20, 8 * 7 * 7), nn.ReLU()
        self.deconv0, self.relu3 = nn.ConvTranspose2d(8, 8, 4, stride=2, padding=1), nn.ReLU()
        self.deconv1, self.sigmoid = nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1), nn.Sigmoid()
        for layer in self.children():
            if hasattr(layer, "weight"):
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)
        # Most pixels are dark: a network that has to learn that first loses its ReLUs on the way.
        nn.init.constant_(self.deconv1.bias, -2)

    def forward(self, x):
        x = self.relu1(self.conv1(self.relu0(self.conv0(x))))
        x = self.relu2(self.dense(self.bottleneck(x.flatten(1))))
        return self.sigmoid(self.deconv1(self.relu3(self.deconv0(x.view(-1, 8, 7, 7)))))


def train(name, brightest):
    torch.manual_seed(0)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    # Of numbers beyond 1 this is no entropy, and PyTorch's own would refuse them.
    loss_of = lambda output, x: -(x * output.clamp(min=1e-7).log() + (1 - x) * (1 - output).clamp(min=1e-7).log()).mean()
    with trialscan.capture(model, directory / name, every={"TRAIN": 5, "EVAL": 1}, activations=True) as c:
        for epoch in range(3):
            model.train()
            for batch in range(0, len(images), 32):
                x = brightest * images[batch : batch + 32]
                loss = loss_of(model(x), x)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                c.step(loss=loss)
            model.eval()
            with torch.no_grad():
                x = brightest * unseen
                output = model(x)
            c.step(loss=loss_of(output, x), digits=unseen_classes)
    print(f"{name}: of digits not seen, {(output - unseen).pow(2).sum() / unseen.pow(2).sum():.2f} is lost")
    print(trialscan.text("check", directory / name))


train("bytes", 255)
train("good", 1)
print(trialscan.text("diff", directory / "good", directory / "bytes"))
