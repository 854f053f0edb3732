"""A loop with DeepSpeed's engine, whose end of a trial a stand-in plays: it writes its file and exits."""
import unittest

import dsat
from dsat import _files
from support import Device, Distributed, PackageTest, fake_torch


class Engine:
    """What the engine does with `autotuning`: its own figures, from rank 0, then exit() on every rank."""

    def __init__(self, rank=0):
        self.trial, self.rank, self.steps = dsat.current_trial(), rank, 0

    def __call__(self, _batch):
        if self.trial is not None and self.trial.model_info:
            self.leave({"num_params": 10, "activation_mem_per_gpu": 4})

    def step(self):
        self.steps += 1
        if self.trial is not None and self.steps == self.trial.end_step + 1:
            self.leave({"fwd": 1.0, "bwd": 2.0, "latency": 5.0, "throughput": 6.4e6, "peak_memory": 1})

    def leave(self, result):
        if self.rank == 0:
            _files.write_json(self.trial.result_path, result)
        raise SystemExit


class WithAnEngine(PackageTest):
    def setUp(self):
        super().setUp()
        self.now = self.use_clock()
        self.use_torch(fake_torch(Device(peak=700, total=1000)))

    def train(self, engine, steps=20):
        timer = dsat.StepTimer()
        for _ in range(steps):
            with dsat.dsat_reporting_context("core_context", "op", steps_completed=3, timer=timer):
                engine("batch")
                self.now[0] += 2
                engine.step()
                timer.step()
        return "the training went on"

    def test_outside_a_tuning_run_nothing_happens(self):
        self.assertEqual(self.train(Engine()), "the training went on")
        with self.assertRaises(SystemExit), dsat.dsat_reporting_context():
            raise SystemExit(0)
        self.assertEqual(self.files(), [])

    def test_memory_and_wall_time_join_what_the_engine_wrote(self):
        self.begin_trial()
        with self.assertRaises(SystemExit) as end:
            self.train(Engine())
        self.assertIsNone(end.exception.code)
        self.assertEqual(self.result(), {"fwd": 1.0, "bwd": 2.0, "latency": 5.0, "throughput": 6.4e6, "peak_memory": 1,
                                         "device_memory": 1000, "wall_latency": 2e6})

    def test_around_the_whole_loop(self):
        self.begin_trial()
        engine = Engine()
        with self.assertRaises(SystemExit), dsat.dsat_reporting_context() as timer:
            while True:
                engine.step()
                timer.step()
        self.assertIn("wall_latency", self.result())

    def test_without_the_timer_there_is_no_wall_time(self):
        self.begin_trial()
        engine = Engine()
        with self.assertRaises(SystemExit), dsat.dsat_reporting_context():
            while True:
                engine.step()
        self.assertNotIn("wall_latency", self.result())
        self.assertEqual(self.result()["device_memory"], 1000)

    def test_the_models_size_gets_the_devices_memory(self):
        self.begin_trial(model_info=True)
        with self.assertRaises(SystemExit):
            self.train(Engine())
        self.assertEqual(self.result("model_info.json"), {"num_params": 10, "activation_mem_per_gpu": 4,
                                                          "peak_memory": 700, "device_memory": 1000})

    def test_another_rank_takes_part_and_writes_nothing(self):
        seen = []
        distributed = Distributed(1, 2, [0, 0])
        distributed.all_reduce = lambda tensor, op: seen.append(tensor.values)
        self.use_torch(fake_torch(Device(peak=700, total=1000), distributed))
        self.begin_trial()
        with self.assertRaises(SystemExit):
            self.train(Engine(rank=1))
        self.assertEqual((seen, self.files()), ([[700, -1000]], ["ds_config.json"]))

    def test_a_script_that_gives_up_alone_waits_for_nobody(self):
        distributed = Distributed(0, 2, [0, 0])
        distributed.all_reduce = lambda tensor, op: self.fail("it waits for ranks that are not coming")
        self.use_torch(fake_torch(Device(), distributed))
        self.begin_trial()
        for code in (1, "no data"):
            with self.assertRaises(SystemExit) as end, dsat.dsat_reporting_context():
                raise SystemExit(code)
            self.assertEqual(end.exception.code, code)

    def test_errors_pass_through(self):
        self.begin_trial()
        with self.assertRaises(RuntimeError), dsat.dsat_reporting_context():
            raise RuntimeError("CUDA out of memory")
        self.assertEqual(self.files(), ["ds_config.json"])

    def test_a_torn_file_of_the_engine_is_left_as_it_is(self):
        self.begin_trial()
        self.write("metrics.json", '{"fwd": 1')
        with self.assertRaises(SystemExit), dsat.dsat_reporting_context():
            raise SystemExit(0)
        self.assertEqual((self.dir / "metrics.json").read_text(), '{"fwd": 1')


if __name__ == "__main__":
    unittest.main()
