"""A loop without an engine: which steps are measured, what comes out, and when the trial ends."""
import unittest

import dsat
from support import Device, Model, PackageTest, Parameter, fake_torch


class Loop(PackageTest):
    def setUp(self):
        super().setUp()
        self.now = self.use_clock()

    def train(self, timer, steps, forward=1.0, backward=2.0, optimizer=3.0, loading=4.0, accumulation=1):
        """Takes as many seconds for each part; a step's loading is once."""
        for step in range(steps):
            self.now[0] += loading
            for _ in range(accumulation):
                with timer.forward():
                    self.now[0] += forward * (100 if step < 3 else 1)  # the first steps are slow
                with timer.backward():
                    self.now[0] += backward
            with timer.optimizer():
                self.now[0] += optimizer
            timer.step()
        return "the training went on"

    def test_outside_a_tuning_run_the_training_goes_on(self):
        timer = dsat.StepTimer()
        self.assertEqual(self.train(timer, 20), "the training went on")
        self.assertIsNone(timer.wall_latency_us())
        self.assertEqual(self.files(), [])

    def test_the_window_is_measured_end_to_end_and_ends_the_trial(self):
        self.begin_trial()
        with self.assertRaises(SystemExit) as end:
            self.train(dsat.StepTimer(flops_per_sample=1e9), 20)
        self.assertEqual(end.exception.code, 0)
        result = self.result()
        self.assertEqual((result["forward"], result["backward"], result["step"]), (1e6, 2e6, 3e6))
        self.assertEqual((result["latency"], result["wall_latency"]), (1e7, 1e7))
        self.assertEqual((result["throughput"], result["samples"]), (3.2, 96))
        self.assertEqual(result["FLOPS_per_gpu"], 8 * 1e9 / 10)

    def test_one_slow_step_counts_little_and_shows_in_the_spread(self):
        self.begin_trial()
        timer = dsat.StepTimer()
        with self.assertRaises(SystemExit):
            for seconds in (50, 50, 50, 10, 40, 10):
                self.now[0] += seconds
                timer.step()
        result = self.result()
        self.assertEqual((result["latency"], result["wall_latency"], result["throughput"]), (10e6, 20e6, 3.2))
        self.assertEqual(result["latency_steps"], 3)
        self.assertAlmostEqual(result["latency_spread"], 300**0.5 / 10)

    def test_accumulation_counts_in_latency_and_not_in_forward(self):
        self.begin_trial()
        with self.assertRaises(SystemExit):
            self.train(dsat.StepTimer(), 20, accumulation=2)
        result = self.result()
        self.assertEqual((result["forward"], result["latency"], result["throughput"]), (1e6, 13e6, 32 / 13))

    def test_the_phases_are_optional(self):
        self.begin_trial(start=0, end=0)
        timer = dsat.StepTimer()
        self.now[0] += 2
        with self.assertRaises(SystemExit):
            timer.step()
        self.assertEqual(self.result(), {"latency": 2e6, "wall_latency": 2e6, "throughput": 16.0, "samples": 32})

    def test_it_ends_after_exactly_end_profile_step_plus_1_steps(self):
        for start, end in ((0, 0), (0, 3), (2, 2), (3, 5)):
            self.begin_trial(start=start, end=end, config={})
            timer = dsat.StepTimer()
            self.assertEqual(self.train(timer, end), "the training went on")
            with self.subTest((start, end)), self.assertRaises(SystemExit):
                self.train(timer, 1)

    def test_a_loop_that_is_too_short_reports_nothing(self):
        self.begin_trial()
        self.train(dsat.StepTimer(), 5)
        self.assertEqual(self.files(), ["ds_config.json"])

    def test_the_device_is_waited_for_in_the_window_only(self):
        device = Device(own=1)
        self.use_torch(fake_torch(device))
        self.begin_trial()
        timer = dsat.StepTimer()
        self.train(timer, 2)
        self.assertEqual(device.synchronized, 0)
        with self.assertRaises(SystemExit):
            self.train(timer, 20)
        self.assertEqual(device.synchronized, 3 * 6 + 4)

    def test_an_error_in_a_phase_passes_through_and_reports_nothing(self):
        self.begin_trial(start=0)
        timer = dsat.StepTimer()
        with self.assertRaises(MemoryError), timer.forward():
            raise MemoryError
        self.assertEqual(self.files(), ["ds_config.json"])


class ModelSize(PackageTest):
    MODEL = Model(Parameter(100), Parameter(40, requires_grad=False), Parameter(0, ds_numel=60))

    def setUp(self):
        super().setUp()
        self.begin_trial(model_info=True)

    def info(self):
        return self.result("model_info.json")

    def test_one_forward_pass_tells_parameters_and_activations(self):
        device = Device(used=1000, peak=2000, total=5000)
        self.use_torch(fake_torch(device))
        with self.assertRaises(SystemExit) as end, dsat.StepTimer(self.MODEL).forward():
            device.used = 1750
        self.assertEqual(end.exception.code, 0)
        self.assertEqual(self.info(), {"num_params": 200, "trainable_num_params": 160, "activation_mem_per_gpu": 750,
                                       "peak_memory": 2000, "device_memory": 5000})

    def test_without_the_phase_the_first_step_tells_parameters(self):
        with self.assertRaises(SystemExit):
            dsat.StepTimer(self.MODEL).step()
        self.assertEqual(self.info(), {"num_params": 200, "trainable_num_params": 160})

    def test_the_other_phases_go_on(self):
        timer = dsat.StepTimer(self.MODEL)
        with timer.backward(), timer.optimizer():
            pass
        self.assertEqual(self.files(), ["ds_config.json"])

    def test_a_sharded_model_needs_its_true_size(self):
        with self.assertRaises(SystemExit):
            dsat.StepTimer(self.MODEL, num_params=800).step()
        self.assertEqual(self.info(), {"num_params": 800, "trainable_num_params": 640})
        with self.assertRaises(SystemExit):
            dsat.StepTimer(self.MODEL, num_params=800, trainable_num_params=0).step()
        self.assertEqual(self.info(), {"num_params": 800, "trainable_num_params": 0})
        with self.assertRaises(SystemExit):
            dsat.StepTimer(num_params=800).step()
        self.assertEqual(self.info(), {"num_params": 800, "trainable_num_params": 800})

    def test_no_model_is_an_error_that_says_what_to_do(self):
        with self.assertRaisesRegex(dsat.Error, r"StepTimer\(model\)"):
            dsat.StepTimer().step()


if __name__ == "__main__":
    unittest.main()
