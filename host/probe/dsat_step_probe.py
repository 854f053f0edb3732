"""The loss and the gradient norm of each optimizer step of DeepSpeed's engine, as the engine itself has them.

The memory probe (sitecustomize.py, beside this file) loads it once the script has imported DeepSpeed's engine, and
writes the report at the end. While the script trains it only keeps copies of the values where they are, and never waits
for a device. It prints nothing, and its failures never reach the script. docs/guard.md has the file's keys.
"""
import sys
import weakref

MOST_STEPS = 4096


class Steps(object):
    """The steps of the first engine that trains."""

    def __init__(self, engine_class):
        self.engine = None  # a weak reference
        self.pending = []  # losses of the micro steps of the step that is not over
        self.output = None  # what forward returned last: the loss, if the script calls loss.backward() itself
        self.losses = []  # of each step, the losses of its micro steps
        self.norms = []
        self.has_ended = False  # DeepSpeed ended the process after the measured window
        self.watch(engine_class, "forward", after=self.after_forward)
        self.watch(engine_class, "backward", before=self.before_backward)
        self.watch(engine_class, "step", before=count_of_steps, after=self.after_step)

    def watch_pipeline(self, engine_class):
        """A pipeline's engine makes a whole step in one call, which returns the mean loss."""
        self.watch(engine_class, "train_batch", before=count_of_steps, after=self.after_batch)

    def watch(self, engine_class, name, before=None, after=None):
        """Has a method call before(engine, inputs, named) and after(engine, result, what `before` returned)."""
        function = getattr(engine_class, name)

        def watched(engine, *inputs, **named):
            state = attempt(before, engine, inputs, named)
            try:
                result = function(engine, *inputs, **named)
            except SystemExit:
                attempt(after, engine, None, state)
                self.has_ended = True
                raise
            attempt(after, engine, result, state)
            return result

        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(watched, attribute, getattr(function, attribute))
        watched.__wrapped__ = function
        setattr(engine_class, name, watched)

    def is_watched(self, engine):
        if self.engine is None and engine.module.training:
            self.engine = weakref.ref(engine)
        return self.engine is not None and self.engine() is engine and len(self.losses) < MOST_STEPS

    def after_forward(self, engine, output, _):
        if engine.module.training and self.is_watched(engine):
            loss = loss_in(output)
            self.output = None if loss is None else loss.detach()

    def before_backward(self, engine, inputs, named):
        if self.is_watched(engine):
            self.pending.append(copy_of(inputs[0] if inputs else named.get("loss")))
            self.output = None

    def after_step(self, engine, _, steps_before):
        if not self.is_watched(engine):
            return
        if self.output is not None:
            self.pending.append(copy_of(self.output))
            self.output = None
        if engine.global_steps != steps_before:
            self.end_step(engine)

    def after_batch(self, engine, loss, steps_before):
        if self.is_watched(engine) and engine.global_steps != steps_before:
            self.pending = [copy_of(loss)]
            self.end_step(engine)

    def end_step(self, engine):
        self.losses.append(self.pending)
        self.pending = []
        self.norms.append(None if was_skipped(engine) else copy_of(norm_of(engine)))

    def report(self):
        """JSON, or None. After an exception a device may never answer, so its values are left."""
        has_failed = getattr(sys, "last_type", None) is not None and not self.has_ended
        losses = [mean_of([number_of(value, has_failed) for value in values]) for values in self.losses]
        norms = [number_of(value, has_failed) for value in self.norms]
        if not any(value is not None for value in losses + norms):
            return None
        return '{"losses": %s, "grad_norms": %s}\n' % (as_list(losses), as_list(norms))


def count_of_steps(engine, inputs, named):
    return engine.global_steps


def attempt(function, *arguments):
    try:
        return function and function(*arguments)
    except Exception:  # another version of DeepSpeed
        return None


def loss_in(output):
    """The loss among what a model returns: the output itself, its member `loss`, or the first of several."""
    for value in (output, getattr(output, "loss", None), output[0] if isinstance(output, (list, tuple)) else None):
        if is_scalar(value):
            return value
    return None


def is_scalar(value):
    return hasattr(value, "detach") and value.numel() == 1


def copy_of(value):
    """A scalar that stays as it is now: a copy on its device, without waiting for it."""
    if is_scalar(value):
        return value.detach().clone()
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def norm_of(engine):
    # This optimizer's norm still has the loss scale in it.
    if type(engine.optimizer).__name__ == "FP16_UnfusedOptimizer":
        return None
    return engine.get_global_grad_norm()


def was_skipped(engine):
    """Whether a loss scale made the engine skip the update: there is no gradient to speak of."""
    return getattr(engine.optimizer, "overflow", False) is True


def number_of(value, has_failed):
    if value is None or (has_failed and getattr(value, "is_cuda", False)):
        return None
    try:
        return float(value)
    except Exception:
        return None


def mean_of(values):
    return None if not values or None in values else sum(values) / len(values)


def as_list(values):
    return "[" + ", ".join(as_json(value) for value in values) + "]"


def as_json(value):
    if value is None:
        return "null"
    if value != value or value in (float("inf"), float("-inf")):
        return '"%s"' % value
    return repr(value)
