"""What DeepSpeed's engines of a process ran with: their own batch sizes and stage, and the shapes that they were fed;
and where they saved a checkpoint.

The memory probe (sitecustomize.py, beside this file) loads it once the script has imported DeepSpeed's engine, and asks
for the report at the end. It prints nothing, changes nothing, and its failures never reach the script. docs/probe.md
has the keys.
"""
import os
import weakref

LONGEST_PATH = 1024
MOST_ENGINES, MOST_TENSORS, MOST_AXES = 4, 4, 4
SETTINGS = (("micro_batch", "train_micro_batch_size_per_gpu"), ("accumulation", "gradient_accumulation_steps"),
            ("train_batch", "train_batch_size"), ("stage", "zero_optimization_stage"))


class Run(object):
    """One engine. A step is all that it is fed between two calls of its step(), in one call or in several."""

    def __init__(self, engine):
        self.engine = weakref.ref(engine)
        self.settings = [(name, whole_number(engine, method)) for name, method in SETTINGS]
        self.place = None  # the engine's count of micro steps when it was fed last
        self.steps = 0
        self.pending = []  # shapes of the step that is not over; the first axis is summed over its calls
        self.sizes = []  # for each tensor and axis: size -> number of steps that had it

    def feed(self, place, shapes):
        if place == self.place and [len(s) for s in shapes] == [len(s) for s in self.pending]:
            for so_far, shape in zip(self.pending, shapes):
                so_far[0] += shape[0]
            return
        self.end_step()
        self.place, self.pending = place, shapes

    def end_step(self):
        if not self.pending:
            return
        self.steps += 1
        for tensor, shape in enumerate(self.pending):
            while len(self.sizes) <= tensor:
                self.sizes.append([])
            for axis, size in enumerate(shape):
                while len(self.sizes[tensor]) <= axis:
                    self.sizes[tensor].append({})
                counts = self.sizes[tensor][axis]
                counts[size] = counts.get(size, 0) + 1
        self.pending = []

    def usual(self, counts):
        """The size of more than half of the steps; a last batch may be smaller. "_": there is none."""
        size = max(counts, key=counts.get)
        return str(size) if 2 * counts[size] > self.steps else "_"

    def report(self):
        self.end_step()
        inputs = ".".join("x".join(self.usual(axis) for axis in tensor) for tensor in self.sizes)
        return self.settings + [("steps", self.steps), ("inputs", inputs)]


class Engines(object):
    def __init__(self, module):
        self.runs = []
        self.checkpoint = None  # the folder of the first one, which newer versions no longer print
        engine = module.DeepSpeedEngine
        forward, save = engine.forward, getattr(engine, "save_checkpoint", None)

        def watched_forward(engine, *inputs, **named):
            try:
                self.feed(engine, inputs, named)
            except Exception:  # another version of DeepSpeed
                pass
            return forward(engine, *inputs, **named)

        def watched_save(engine, save_dir, *rest, **named):
            try:
                if self.checkpoint is None:
                    self.checkpoint = os.path.abspath(save_dir)[:LONGEST_PATH]
            except Exception:  # no path
                pass
            return save(engine, save_dir, *rest, **named)

        engine.forward = like(forward, watched_forward)
        if save is not None:
            engine.save_checkpoint = like(save, watched_save)

    def feed(self, engine, inputs, named):
        if not engine.module.training:
            return
        run = next((run for run in self.runs if run.engine() is engine), None)
        if run is None:
            if len(self.runs) == MOST_ENGINES:
                return
            run = Run(engine)
            self.runs.append(run)
        shapes = []
        collect(inputs, shapes, 0)
        collect(named, shapes, 0)
        if shapes:
            # A pipeline's engine counts no micro steps, and is fed each of them in one call.
            is_pipeline = getattr(engine, "pipeline_parallelism", False)
            run.feed(object() if is_pipeline else engine.micro_steps, shapes)

    def report(self):
        return [(str(index), run.report()) for index, run in enumerate(self.runs)] or None


def like(function, watched):
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(watched, attribute, getattr(function, attribute))
    watched.__wrapped__ = function
    return watched


def collect(values, shapes, depth):
    """The shapes of the first tensors among values, lists and dictionaries of them."""
    if hasattr(values, "values"):
        values = values.values()
    for value in values:
        if len(shapes) == MOST_TENSORS:
            return
        shape = getattr(value, "shape", None)
        if shape is not None:
            sizes = [int(size) for size in shape[:MOST_AXES]]
            if sizes:
                shapes.append(sizes)
        elif depth < 2 and (isinstance(value, (list, tuple)) or hasattr(value, "values")):
            collect(value, shapes, depth + 1)


def whole_number(engine, method):
    try:
        value = int(getattr(engine, method)())
    except Exception:
        return None
    return value if 0 <= value < 10**12 else None
