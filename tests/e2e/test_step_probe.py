"""The hook's look at DeepSpeed's steps, on engines of the test's own: what it keeps, and what it leaves alone."""
import importlib.util
import json
import sys
import unittest

from support import BUILD


def load():
    spec = importlib.util.spec_from_file_location("dsat_step_probe", BUILD / "probe/dsat_step_probe.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Scalar:
    """A tensor of one element that changes in place, and counts how often somebody waits for its value."""
    reads = 0
    is_cuda = True

    def __init__(self, value):
        self.value = value

    def detach(self):
        return self

    def clone(self):
        return Scalar(self.value)

    def numel(self):
        return 1

    def __float__(self):
        Scalar.reads += 1
        return float(self.value)


class Model:
    training = True


class Optimizer:
    overflow = False


class Probed(unittest.TestCase):
    def setUp(self):
        class Engine:
            """DeepSpeed's, as far as the hook looks."""

            def __init__(self, accumulation=1, end=None):
                self.module, self.optimizer = Model(), Optimizer()
                self.accumulation, self.end, self.norm = accumulation, end, None
                self.global_steps = self.micro_steps = 0

            def forward(self, loss):
                return loss

            def backward(self, loss, retain_graph=False):
                """Runs backward."""
                return "scaled"

            def step(self):
                self.micro_steps += 1
                if self.micro_steps % self.accumulation == 0:
                    self.global_steps += 1
                    if self.global_steps == self.end:
                        raise SystemExit(0)
                return "stepped"

            def get_global_grad_norm(self):
                return self.norm

        self.steps = load().Steps(Engine)
        self.Engine = Engine
        Scalar.reads = 0

    def report(self):
        text = self.steps.report()
        return text and json.loads(text)

    def train(self, engine, losses, norms):
        for loss, norm in zip(losses, norms):
            engine.norm = norm
            engine.backward(engine.forward(loss))
            engine.step()

    def test_loss_and_norm_of_each_step(self):
        self.train(self.Engine(), [Scalar(3.5), 3, Scalar(2.5)], [1.5, Scalar(2), None])
        self.assertEqual(self.report(), {"losses": [3.5, 3.0, 2.5], "grad_norms": [1.5, 2.0, None]})

    def test_a_step_is_the_mean_of_its_micro_steps(self):
        self.train(self.Engine(accumulation=2), [4, 2, 3, 2], [9, 1, 9, 2])
        self.assertEqual(self.report(), {"losses": [3.0, 2.5], "grad_norms": [1.0, 2.0]})

    def test_the_values_are_those_of_their_moment_and_nobody_waits_for_them(self):
        loss, norm = Scalar(3.0), Scalar(1.0)
        engine = self.Engine()
        for value in (3.0, 2.0):
            loss.value = norm.value = value
            self.train(engine, [loss], [norm])
        loss.value = norm.value = 99.0
        self.assertEqual(Scalar.reads, 0)
        self.assertEqual(self.report(), {"losses": [3.0, 2.0], "grad_norms": [3.0, 2.0]})

    def test_the_last_step_counts_although_it_ends_the_process(self):
        with self.assertRaises(SystemExit):
            self.train(self.Engine(end=2), [3, 2, 1], [1, 2, 3])
        self.assertEqual(self.report(), {"losses": [3.0, 2.0], "grad_norms": [1.0, 2.0]})

    def test_a_script_that_calls_backward_on_its_loss(self):
        class Output:
            loss = Scalar(2.0)

        engine = self.Engine()
        for output in (Output(), (Scalar(1.0), "logits"), Scalar(0.5)):
            engine.forward(output)
            engine.step()
        self.assertEqual(self.report()["losses"], [2.0, 1.0, 0.5])

    def test_what_json_has_no_number_for(self):
        self.train(self.Engine(), [float("nan"), 1], [float("inf"), -float("inf")])
        self.assertEqual(self.report(), {"losses": ["nan", 1.0], "grad_norms": ["inf", "-inf"]})

    def test_an_overflow_of_the_loss_scale_has_no_norm(self):
        engine = self.Engine()
        engine.optimizer.overflow = True
        self.train(engine, [3], [float("inf")])
        engine.optimizer.overflow = False
        self.train(engine, [2], [1])
        self.assertEqual(self.report()["grad_norms"], [None, 1.0])

    def test_the_first_engine_that_trains_counts(self):
        evaluated, trained = self.Engine(), self.Engine()
        evaluated.module = type("Evaluated", (), {"training": False})()
        evaluated.forward(Scalar(9.0))
        self.train(trained, [3], [1])
        self.train(self.Engine(), [7], [7])
        self.assertEqual(self.report(), {"losses": [3.0], "grad_norms": [1.0]})

    def test_results_errors_and_names_are_the_engines_own(self):
        engine = self.Engine()
        self.assertEqual((engine.forward(1), engine.backward(1, retain_graph=True), engine.step()),
                         (1, "scaled", "stepped"))
        self.assertEqual((engine.backward.__name__, engine.backward.__doc__), ("backward", "Runs backward."))
        with self.assertRaises(TypeError):
            engine.step(1, 2, 3)
        engine.get_global_grad_norm = lambda: 1 / 0
        self.train(engine, [object()], [1])
        self.assertIsNone(self.steps.losses[-1][0])

    def test_after_an_exception_no_device_is_asked(self):
        self.train(self.Engine(), [Scalar(3.0)], [1.0])
        sys.last_type = RuntimeError
        self.addCleanup(delattr, sys, "last_type")
        self.assertEqual(self.report(), {"losses": [None], "grad_norms": [1.0]})
        self.assertEqual(Scalar.reads, 0)

    def test_nothing_known_is_no_report(self):
        self.assertIsNone(self.report())
        self.train(self.Engine(), [None], [None])
        self.assertIsNone(self.report())

    def test_a_pipeline_makes_a_step_in_one_call(self):
        class Pipeline(self.Engine):
            def train_batch(self):
                self.global_steps += 1
                self.norm = 4
                return Scalar(3.0)

        self.steps.watch_pipeline(Pipeline)
        Pipeline().train_batch()
        self.assertEqual(self.report(), {"losses": [3.0], "grad_norms": [4.0]})


if __name__ == "__main__":
    unittest.main()
