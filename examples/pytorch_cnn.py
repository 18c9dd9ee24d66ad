"""The notebook on tensor analysis in PyTorch: a small CNN learns digits, once with weights anywhere from -1 to 1, once with
weights that suit its ReLUs. trialscan says what went wrong, and where the two part.
Usage: python3 examples/pytorch_cnn.py [DIRECTORY]
"""
import pathlib, sys
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
import trialscan
from digits import digits

directory = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "cnn")
(images, classes), (unseen, unseen_classes) = digits(4000, seed=1), digits(200, seed=2)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0, self.relu0 = nn.Conv2d(1, 8, 5), nn.ReLU()
        self.conv1, self.relu1 = nn.Conv2d(8, 16, 5), nn.ReLU()
        self.dense0, self.relu2 = nn.Linear(256, 64), nn.ReLU()
        self.dense1, self.pool = nn.Linear(64, 10), nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(self.relu0(self.conv0(x)))
        x = self.pool(self.relu1(self.conv1(x)))
        return self.dense1(self.relu2(self.dense0(x.flatten(1))))


def train(name, init):
    torch.manual_seed(0)
    model, loss_of = CNN(), nn.CrossEntropyLoss()
    for weight in model.parameters():
        init(weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with trialscan.capture(model, directory / name, every={"TRAIN": 5, "EVAL": 1}, activations=True, optimizer=True) as c:
        for batch in range(0, len(images), 32):
            x, y = images[batch : batch + 32], classes[batch : batch + 32]
            output = model(x)
            loss = loss_of(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            c.step(loss=loss, labels=y, predictions=output)
        model.eval()
        with torch.no_grad():
            output = model(unseen)
        accuracy = (output.argmax(1) == unseen_classes).float().mean()
        c.step(loss=loss_of(output, unseen_classes), accuracy=accuracy, labels=unseen_classes, predictions=output)
    print(f"{name}: accuracy {accuracy:.2f} on digits not seen")
    print(trialscan.text("check", directory / name))


train("bad", lambda weight: nn.init.uniform_(weight, -1, 1))
train("good", lambda weight: nn.init.kaiming_normal_(weight) if weight.dim() > 1 else nn.init.zeros_(weight))
print(trialscan.text("diff", directory / "good", directory / "bad"))
