"""Losses and gradient norms that a script notes: what reaches the result file."""
import importlib
import math
import unittest

import dsat
from support import PackageTest


class Tensor:
    """One element, which changes in place as a buffer of a device does."""

    def __init__(self, value):
        self.value = value

    def detach(self):
        return self

    def clone(self):
        return Tensor(self.value)

    def __float__(self):
        return float(self.value)


class Steps(PackageTest):
    def setUp(self):
        super().setUp()
        steps = importlib.import_module("dsat._steps")
        for values in (steps._losses, steps._grad_norms):
            values.clear()
            self.addCleanup(values.clear)

    def test_each_step_as_it_was(self):
        self.begin_trial()
        loss = Tensor(3)
        for value in (3, 2):
            loss.value = value
            dsat.report_step(loss, grad_norm=value / 2)
        dsat.report({"latency": 1})
        self.assertEqual(self.result(), {"latency": 1, "losses": [3.0, 2.0], "grad_norms": [1.5, 1.0]})

    def test_what_is_unknown_is_absent_or_null(self):
        self.begin_trial()
        dsat.report_step(1)
        dsat.report_step()
        dsat.report_step(Tensor(math.nan))
        dsat.report_step("none")
        dsat.report({"latency": 1})
        self.assertEqual(self.result(), {"latency": 1, "losses": [1.0, None, "nan", None]})

    def test_nothing_happens_outside_a_measured_run(self):
        dsat.report_step(1, 2)
        self.begin_trial(model_info=True)
        dsat.report_step(1, 2)
        dsat.report_model_info(10)
        self.assertEqual(self.result("model_info.json"), {"num_params": 10, "trainable_num_params": 10})

    def test_the_timer_takes_them_too(self):
        self.begin_trial()
        timer = dsat.StepTimer(num_params=1)
        with self.assertRaises(SystemExit):
            while True:
                timer.step(loss=2.5, grad_norm=Tensor(1))
        self.assertEqual(set(self.result()["losses"]), {2.5})
        self.assertEqual(len(self.result()["grad_norms"]), dsat.current_trial().end_step + 1)


if __name__ == "__main__":
    unittest.main()
