"""What trialscan.py costs a training: the median CPU time of a step, without it and with what it can save.
Usage: python3 bench/capture.py [STEPS]
"""
import contextlib, pathlib, statistics, sys, tempfile, time
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
from trialscan import capture

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
torch.set_num_threads(1)  # The others wait in loops, which would count.
model = torch.nn.Sequential(
    torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10),
)
x, y = torch.randn(128, 784), torch.randint(10, (128,))
optimizer = torch.optim.Adam(model.parameters())


def median_ms(**options):
    with tempfile.TemporaryDirectory() as folder:
        saving = capture(model, folder, **options) if options else contextlib.nullcontext()
        times = []
        with saving:
            for _ in range(STEPS):
                start = time.process_time()
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if options:
                    saving.step(loss=loss)
                times.append(time.process_time() - start)
        files = sorted(pathlib.Path(folder).glob("*.safetensors"))
        return 1000 * statistics.median(times[1:]), files[-1].stat().st_size / 1e6 if files else 0


all_of_it = dict(gradients=True, activations=True, optimizer=True)
median_ms()
for name, options in [
    ("without trialscan", {}),
    ("a step that is not saved", dict(every=1000, **all_of_it)),
    ("statistics of all", dict(reduce=True, **all_of_it)),
    ("weights and gradients", dict(gradients=True)),
    ("weights, gradients, activations, optimizer", all_of_it),
]:
    ms, size = median_ms(**options)
    print(f"| {name} | {ms:.1f} ms | {size:.2f} MB |")
