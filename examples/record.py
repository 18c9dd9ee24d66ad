"""Saves a training as a trial: numpy, and trialscan at the other end of a pipe. docs/record.md describes the stream."""
import io, json, subprocess, sys
import numpy as np

record = subprocess.Popen([*sys.argv[2:], "record", "--out", sys.argv[1]], stdin=subprocess.PIPE)

def save(step, mode="TRAIN", **tensors):
    file = io.BytesIO()
    np.savez(file, **tensors)
    line = json.dumps({"step": step, "mode": mode, "bytes": file.tell()})
    record.stdin.write(line.encode() + b"\n" + file.getbuffer())

# A linear regression, trained by gradient descent.
random = np.random.default_rng(0)
x, weight = random.normal(size=(64, 3)), np.zeros(3)
y = x @ [1.0, -2.0, 0.5]
for step in range(50):
    error = x @ weight - y
    gradient = 2 * x.T @ error / len(x)
    save(step, loss=np.mean(error**2), **{"linear.weight": weight, "gradient/linear.weight": gradient})
    weight = weight - 0.1 * gradient
record.stdin.close()
sys.exit(record.wait())
