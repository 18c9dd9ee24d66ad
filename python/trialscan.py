"""trialscan from Python: capture(...) saves a training in PyTorch; scan, value, check, diff and report read any trial.
Saving needs torch alone. Reading needs the command trialscan (npm i -g trialscan), or what TRIALSCAN in the environment
names, such as "npx trialscan". The package trialscan has examples in docs/pytorch.md and docs/python.md. Apache-2.0."""
import ctypes, gc, glob, html, importlib.util, io, json, os, shlex, shutil, subprocess, tempfile, warnings

DTYPES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
          "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64", "uint16": "U16", "uint32": "U32",
          "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
REDUCTIONS = ["min", "max", "mean", "std", "l2", "abs_max", "abs_mean"]


class capture:
    """Saves what a training computes, a file a step: `with capture(model, "run") as c: … c.step(loss=loss)`.

    every: the steps of a mode from one that is saved to the next; or {"TRAIN": 100, "EVAL": 1}, and no other mode.
    gradients, activations, optimizer: what is saved beside weights and the values that step() is given.
    reduce: statistics in place of tensors, computed on the device. first_step: that of a training that goes on."""

    def __init__(self, model, path, every=1, gradients=True, activations=False, optimizer=False, reduce=False, first_step=0):
        global torch  # Not loaded by who only reads.
        import torch
        if isinstance(every, dict) and not {"TRAIN", "EVAL"}.issuperset(every):
            raise ValueError(f"every: expected the modes TRAIN and EVAL, got {', '.join(map(repr, every))}")
        self.model, self.path, self.every, self.reduce = model, os.fspath(path), every, reduce
        self.gradients, self.activations, self.optimizer = gradients, activations, optimizer
        self.rank, self.workers = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.step_number, self.mode_steps, self.first_step, self.hooks, self.grad_hooks = first_step, {}, first_step, [], []
        self._clear()

    def __enter__(self):
        steps = f"step_*/rank_{self.rank}.safetensors" if self.workers > 1 else "step_*.safetensors"
        if self.first_step == 0 and glob.glob(os.path.join(glob.escape(self.path), steps)):
            raise FileExistsError(f"{self.path} has steps already: name another directory, or first_step=N to go on")
        os.makedirs(self.path, exist_ok=True)
        for name, module in self.model.named_modules():
            kind, is_leaf = type(module).__name__, next(module.children(), None) is None
            # A layer without weights is known by its class: ReLU, Sigmoid.
            is_told = kind.lower() in name.lower() or next(module.parameters(), None) is not None
            label = kind if name == "" else _plain(name) if is_told else f"{_plain(name)}.{kind}"
            takes = name == "" or kind == "Embedding" or type(module).__module__ == "torch.nn.modules.activation"
            self.hooks.append(module.register_forward_pre_hook(self._before(name, label, takes)))
            self.hooks.append(module.register_forward_hook(self._after(name, label, is_leaf or name == "")))
        return self

    def __exit__(self, kind, *_):
        self._clear()
        while self.hooks:
            self.hooks.pop().remove()
        if self.workers > 1 and kind is None and torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.barrier()  # The job has ended when all workers have saved their last step.
        if self.rank == 0 and (self.workers == 1 or kind is None):
            open(os.path.join(self.path, "training_job_end.ts"), "w").close()

    def step(self, **values):
        """Ends a step: after backward(), best before zero_grad(). Values are numbers or tensors: loss=…, labels=…"""
        for name in [name for name, value in values.items() if value is None or isinstance(value, str)]:
            raise TypeError(f"step: expected a number or a tensor as {name}, got {values[name]!r}")
        self.mode or self._begin()  # A model that was not called.
        if self.saves:
            named = [(_plain(name), weight) for name, weight in self.model.named_parameters()]
            for name, weight in named:
                self._keep(name, weight, "biases" if name.endswith("bias") else "weights")  # Of layers that were not called, too.
            for name, value in values.items():
                is_one = not torch.is_tensor(value) or value.numel() == 1
                is_loss = is_one and "loss" in name.lower() and "scal" not in name.lower()
                self._keep(name, value, "scalars" if is_one else name, *(["losses"] if is_loss else []))
            for name, weight in named if self.gradients and self.mode == "TRAIN" else []:
                grad, seen = weight.grad, self.grads.get(name)
                if grad is not None and seen is not None and grad.layout == seen.layout == torch.strided:
                    grad = torch.where(grad.any(), grad, seen)  # If all of it is zero, zero_grad() was called already.
                if grad is not None or seen is not None:
                    self._keep(f"gradient/{name}", seen if grad is None else grad, "gradients")
            if self.mode == "TRAIN" and self.optimizer:
                self._states({id(weight): name for name, weight in named})
            self._write()
        self.mode_steps[self.mode] = self.mode_step + 1
        self.step_number += 1
        self._clear()

    def _clear(self):
        while self.grad_hooks:
            self.grad_hooks.pop().remove()
        # What is kept of the step, by name in the order of execution; what of it waits on the device; its collections.
        self.tensors, self.waiting, self.members, self.calls, self.grads = {}, {}, {}, {}, {}
        self.mode, self.saves, self.listens = None, False, False

    def _begin(self):
        mode = "TRAIN" if self.model.training else "EVAL"
        if mode == self.mode:
            return
        self._clear()
        self.mode, self.mode_step = mode, self.mode_steps.get(mode, self.first_step)
        every = self.every.get(mode, 0) if isinstance(self.every, dict) else self.every
        self.saves = self.listens = every > 0 and self.mode_step % every == 0
        for name, weight in self.model.named_parameters() if self.saves and self.gradients and mode == "TRAIN" else []:
            def sum_up(grad, name=_plain(name), weight=weight):
                if not self.grads and weight.grad is not None and weight.grad.norm() > 0:
                    warnings.warn(f"{name} still has its gradient of the step before: zero_grad() was not called")
                self.grads[name] = self.grads[name] + grad.detach() if name in self.grads else grad.detach().clone()
            if weight.requires_grad:
                self.grad_hooks.append(weight.register_hook(sum_up))

    def _before(self, path, label, takes):
        def hook(module, inputs):
            if path == "":
                self._begin()
            if self.listens:
                for name, weight in module.named_parameters(path, recurse=False):
                    self._keep(_plain(name), weight, "biases" if name.endswith("bias") else "weights")
                if self.activations and takes:
                    self._layer(label, "input", inputs)
        return hook

    def _after(self, path, label, gives):
        def hook(module, inputs, outputs):
            if self.listens and self.activations and gives:
                self._layer(label, "output", outputs)
            self.listens = self.listens and path != ""  # Of the calls of a step, as when gradients add up, the first.
        return hook

    def _layer(self, label, side, value):
        if torch.is_tensor(value):
            at = self.calls[label, side] = self.calls.get((label, side), -1) + 1
            self._keep(f"{label}_{side}_{at}", value, f"{side}s")
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
            self._layer(label, side, one)

    def _keep(self, name, value, *collections):
        if name in self.tensors:
            return
        value = value.detach() if torch.is_tensor(value) else torch.tensor(value, dtype=torch.float64)
        value = value.to_local() if hasattr(value, "to_local") else value
        value = value.to_dense() if value.layout != torch.strided else value
        if self.reduce and (value.numel() > 1 or value.numel() == 1 and value.device.type != "cpu"):
            self.waiting[name] = _statistics(value) if value.numel() > 1 else value.reshape(1).clone()
        self.tensors[name] = None if name in self.waiting else value.to("cpu", copy=True)
        for collection in collections:
            self.members.setdefault(collection, []).append(name)

    def _states(self, names):
        if self.optimizer is True:  # Found among all objects.
            live = [one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)]
            self.optimizer = [one for one in live if any(id(w) in names for g in one.param_groups for w in g["params"])]
        for one in self.optimizer if isinstance(self.optimizer, list) else [self.optimizer]:
            for at, group in enumerate(one.param_groups):
                self._keep(f"learning_rate_{at}" if at else "learning_rate", group["lr"], "scalars")
            for weight, states in one.state.items():
                for key, value in states.items() if id(weight) in names else []:
                    if isinstance(value, (int, float, torch.Tensor)):
                        self._keep(f"optimizer.{names[id(weight)]}.{key}", value, "optimizer", *([] if key == "step" else [key]))

    def _fetch(self):
        """Brings what waits on the device, in one transfer: numbers, and statistics as the rows of a table."""
        device = next(iter(self.waiting.values())).device
        flat = torch.cat([value.to(device) for value in self.waiting.values()]).cpu().double()
        fetched = dict(zip(self.waiting, flat.split([len(value) for value in self.waiting.values()])))
        self.tensors.update({name: value.reshape(()) for name, value in fetched.items() if len(value) == 1})
        rows = {name: value for name, value in fetched.items() if len(value) > 1}
        told = {"order": list(self.tensors), "reductions": REDUCTIONS, "reduced": list(rows)}
        self.tensors = {name: value for name, value in self.tensors.items() if value is not None}
        self.tensors.update({"trialscan.statistics": torch.stack(list(rows.values()))} if rows else {})
        return told

    def _write(self):
        told = {"mode": self.mode, "mode_step": self.mode_step, "num_workers": self.workers, "collections": self.members}
        told.update(self._fetch() if self.waiting else {})
        header, at, kept = {"__metadata__": {"trialscan": json.dumps(told)}}, 0, []
        for name, value in self.tensors.items():
            dtype, value = DTYPES.get(str(value.dtype)[len("torch."):]), value.contiguous()
            if dtype is None:
                warnings.warn(f"{name} is not saved: safetensors has no {value.dtype}")
                continue
            end = at + value.numel() * value.element_size()
            header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [at, end]}
            at, kept = end, kept + [(value, end - at)]
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        step = os.path.join(self.path, f"step_{self.step_number:08d}")
        path = os.path.join(step, f"rank_{self.rank}") if self.workers > 1 else step
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.tmp", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for value, size in kept:
                file.write((ctypes.c_char * size).from_address(value.data_ptr()) if size else b"")
        os.replace(f"{path}.tmp", f"{path}.safetensors")


def _plain(name):  # Without what DistributedDataParallel, FSDP and torch.compile put in.
    return ".".join(part for part in name.split(".") if part not in ("module", "_orig_mod", "_fsdp_wrapped_module"))


def _statistics(value):
    """In the order of REDUCTIONS, std as that of the population; on the device of the value."""
    value = value.abs() if value.is_complex() else value if value.dtype == torch.float64 else value.float()
    low, high = torch.aminmax(value)
    most = torch.maximum(low.abs(), high.abs())
    unit = torch.where((most > 0) & most.isfinite(), most, torch.ones_like(most))
    value = value / unit  # Squares neither overflow nor vanish.
    sums = torch.stack([value.mean(), value.std(unbiased=False), torch.linalg.vector_norm(value), value.abs().mean()]) * unit
    return torch.stack([low, high, *sums[:3], most, sums[3]])


# --------------------------------------------------------------------------------------------------------------- reading

VERDICT = "trialscan: verdict: "  # How the last line of a command begins.


class TrialscanError(RuntimeError):
    """What the command trialscan said when it failed."""


class Table(dict):
    """Columns by name, where there is no pandas. As of a DataFrame, `attrs` says what is no row."""
    attrs = {}


class Page:
    """A page that notebooks show; `html` is its text."""

    def __init__(self, text, height):
        self.html, self.height = text, height

    def __repr__(self):
        return "a page, which a notebook shows; html has its text"

    def _repr_html_(self):
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="{self.height}" style="border: 0"></iframe>'


def scan(*trials, **options):
    """A row for each tensor, step and worker: scan("run", collection="gradients", reductions=["mean", "abs_max"])."""
    return _table("scan", trials, options)


def diff(a, b, **options):
    """Where two trials differ, a row for each difference; those of `trialscan diff --all` with all=True."""
    return _table("diff", (a, b), options)


def value(trial, tensor, step=None, **options):
    """The values of a tensor at a step, by default its last, as an array of numpy."""
    import numpy
    options = {"format": "npy", "out": "-", **({} if step is None else {"step": step}), **options}
    return numpy.load(io.BytesIO(_run("show", (trial, tensor), options)))


def check(*trials, **options):
    """The findings of rules, a row each. `attrs["verdict"]` is the verdict as a text; `attrs["not_judged"]` names the rules
    that lacked data, and what they lack."""
    verdicts = []
    lines = _lines(_run("check", trials, {"format": "jsonl", **options}, accepts=(0, 1, 4, 5), verdicts=verdicts))
    found = _framed([line for line in lines if "message" in line])
    found.attrs = {"verdict": "\n".join(verdicts), "not_judged": [line for line in lines if "missing" in line]}
    return found


def text(command, *trials, **options):
    """What a command prints for people: print(text("check", "run")), text("nan", "run"), text("ls", "run")."""
    return _run(command, trials, {"format": "table", **options}, accepts=(0, 1, 4, 5)).decode()


def report(*trials, height=700, **options):
    """The page of `trialscan report`, shown inline as the last value of a cell."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "report.html")
        _run("report", trials, {"out": out, **options}, tells=False)
        with open(out, encoding="utf-8") as file:
            return Page(file.read(), height)


def _run(command, trials, options, accepts=(0, 1, 4), tells=True, verdicts=None):
    """What a command writes to its standard output. What it says beside that becomes a warning, or an error; verdicts do not."""
    program = shlex.split(os.environ.get("TRIALSCAN", "trialscan"))
    found = shutil.which(program[0]) if program else None
    if found is None:
        name = program[0] if program else "in TRIALSCAN"
        raise TrialscanError(f"there is no command {name}: npm i -g trialscan (it needs Node.js 20.20 or newer), "
                             'or name one in the environment, as TRIALSCAN="npx trialscan"')
    flags = [flag for name, given in options.items() for flag in _flags(name, given)]
    done = subprocess.run([found, *program[1:], command, *flags, "--", *map(os.fspath, trials)], capture_output=True)
    lines = done.stderr.decode(errors="replace").splitlines()
    said = "\n".join(line for line in lines if not line.startswith(VERDICT)).strip()
    if verdicts is not None:
        verdicts += [line[len(VERDICT):] for line in lines if line.startswith(VERDICT)]
    if done.returncode not in accepts:
        raise TrialscanError(said or f"trialscan {command} ended with exit code {done.returncode}")
    if said and (tells or done.returncode != 0):
        warnings.warn(said, stacklevel=3)
    return done.stdout


def _flags(name, given):
    """An argument as options of the command line: mode_steps="-5:" is --mode-steps=-5:, a list of reductions has commas."""
    flag = "--" + name.replace("_", "-")
    if given is None or isinstance(given, bool):
        return [flag] if given else []
    if isinstance(given, range):
        return [f"{flag}={given.start}:{given.stop}:{given.step}"]
    if isinstance(given, (list, tuple)) and name in ("tensor", "collection", "worker", "rule"):
        return [f"{flag}={one}" for one in given]
    return [f"{flag}={','.join(map(str, given)) if isinstance(given, (list, tuple)) else given}"]


def _table(command, trials, options):
    if importlib.util.find_spec("pyarrow") is None:
        lines = _lines(_run(command, trials, {"format": "jsonl", **options}))
        return _framed([line for line in lines if "divergence" not in line])  # That is the first difference, again.
    import pyarrow.ipc
    table = pyarrow.ipc.open_stream(_run(command, trials, {"format": "arrow", **options})).read_all()
    columns = dict(zip(table.column_names, table.columns))
    if command == "scan" and len(table) > 0:  # Only columns that say something, as in JSON Lines.
        columns = {name: column for name, column in columns.items() if column.null_count < len(column)}
        for name, is_said in (("trial", len(trials) > 1), ("saved", True in columns["saved"].to_pylist())):
            is_said or columns.pop(name)
    texts = {name: column.cast("string") for name, column in columns.items() if pyarrow.types.is_dictionary(column.type)}
    table = pyarrow.table({**columns, **texts})
    if importlib.util.find_spec("pandas") is None:
        return Table((name, table[name].to_pylist()) for name in table.column_names)
    return table.to_pandas()


def _lines(output):
    return [json.loads(line) for line in output.splitlines() if line]


def _framed(rows):
    """Rows as a DataFrame, where there is pandas. Numbers that are not finite are texts in JSON."""
    numbers = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
    names = ("trial", "tensor", "worker", "mode", "message")
    for row in rows:
        row.update({key: numbers.get(given, given) for key, given in row.items() if type(given) is str and key not in names})
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if importlib.util.find_spec("pandas") is None:
        return Table((key, [row.get(key) for row in rows]) for key in columns)
    import pandas
    return pandas.DataFrame(rows, columns=columns)
