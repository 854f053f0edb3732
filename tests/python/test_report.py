"""What reaches the result file, from whom, and what is refused."""
import os
import unittest

import dsat
from support import Device, Distributed, PackageTest, fake_torch


class Reporting(PackageTest):
    def test_nothing_happens_outside_a_tuning_run(self):
        dsat.report({"nonsense": "none"})
        dsat.report_model_info(0)
        self.assertEqual(self.files(), [])

    def test_a_measurement(self):
        self.begin_trial()
        dsat.report({"throughput": 12.5, "wall_latency": 3, "loss": 0.25})
        self.assertEqual(self.result(), {"throughput": 12.5, "wall_latency": 3, "loss": 0.25})
        self.assertEqual(self.files(), ["ds_config.json", "metrics.json"])

    def test_either_generation_of_names_will_do(self):
        self.begin_trial()
        dsat.report({"fwd": 1.0})
        dsat.report({"forward": 1.0})
        self.assertEqual(self.result(), {"forward": 1.0})

    def test_what_is_no_measurement_is_refused(self):
        self.begin_trial()
        for metrics, words in (({}, "got none of FLOPS_per_gpu, throughput.*nothing"), ({"loss": 1}, r"\['loss'\]"),
                               ({"latency": "3"}, "'latency' is not a number but '3'"),
                               ({"latency": True}, "not a number"), ({"latency": None}, "not a number"),
                               ({"latency": float("nan")}, "'latency' is nan"), ({"latency": float("inf")}, "finite"),
                               ({"latency": -1}, "not negative"),
                               ({"latency": 1, "loss": float("nan")}, "'loss' is nan")):
            with self.subTest(str(metrics)), self.assertRaisesRegex(dsat.Error, words):
                dsat.report(metrics)
        self.assertEqual(self.files(), ["ds_config.json"])

    def test_a_measurement_where_the_models_size_is_wanted(self):
        self.begin_trial(model_info=True)
        with self.assertRaisesRegex(dsat.Error, "report_model_info"):
            dsat.report({"latency": 1})

    def test_the_models_size(self):
        self.begin_trial(model_info=True)
        dsat.report_model_info(1000, 10, 5)
        self.assertEqual(self.result("model_info.json"),
                         {"num_params": 1000, "trainable_num_params": 10, "activation_mem_per_gpu": 5})
        dsat.report_model_info(1000)
        self.assertEqual(self.result("model_info.json"), {"num_params": 1000, "trainable_num_params": 1000})

    def test_no_model_at_all(self):
        self.begin_trial(model_info=True)
        for arguments, words in (((0,), "num_params is 0"), ((-1,), "negative"), (("many",), "not a number"),
                                 ((0.5,), "num_params is 0.5"), ((10, 11), "trainable_num_params is 11"),
                                 ((1, 1, float("nan")), "activation_mem_per_gpu")):
            with self.subTest(arguments), self.assertRaisesRegex(dsat.Error, words):
                dsat.report_model_info(*arguments)

    def test_the_models_size_is_nobodys_concern_in_a_measured_run(self):
        self.begin_trial()
        dsat.report_model_info(1000)
        self.assertEqual(self.files(), ["ds_config.json"])

    def test_only_rank_0_writes(self):
        self.begin_trial()
        os.environ["SLURM_STEP_NUM_TASKS"] = "2"
        for variable in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
            os.environ[variable] = "1"
            dsat.report({"latency": 1})
            self.assertEqual(self.files(), ["ds_config.json"])
            del os.environ[variable]
        os.environ.update(RANK="0", WORLD_SIZE="8")
        dsat.report({"latency": 1})
        self.assertEqual(self.result()["world_size"], 8)

    def test_a_slurm_allocation_is_no_training(self):
        self.begin_trial()
        os.environ.update(SLURM_NTASKS="8", SLURM_PROCID="3")  # of salloc, and of an outer step
        for tasks in ({}, {"SLURM_STEP_NUM_TASKS": "1"}):
            os.environ.update(tasks)
            dsat.report({"latency": 1})
            self.assertNotIn("world_size", self.result())
            (self.dir / "metrics.json").unlink()
        os.environ.update(SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0")
        dsat.report({"latency": 1})
        self.assertEqual(self.result()["world_size"], 4)


class Memory(PackageTest):
    def setUp(self):
        super().setUp()
        self.begin_trial()

    def memory(self):
        return {key: value for key, value in self.result().items()
                if key in ("peak_memory", "device_memory", "world_size")}

    def test_of_the_device_that_torch_uses(self):
        self.use_torch(fake_torch(Device(peak=700, total=1000)))
        dsat.report({"latency": 1})
        self.assertEqual(self.memory(), {"peak_memory": 700, "device_memory": 1000})

    def test_of_a_device_that_is_not_the_current_one(self):
        self.use_torch(fake_torch(Device(peak=700, total=1000, own=1)))
        dsat.report({"latency": 1})
        self.assertEqual(self.memory(), {"peak_memory": 700, "device_memory": 1000})

    def test_of_the_worst_rank_and_the_smallest_device(self):
        self.use_torch(fake_torch(Device(peak=700, total=1000), Distributed(0, 2, [900, -800])))
        dsat.report({"latency": 1})
        self.assertEqual(self.memory(), {"peak_memory": 900, "device_memory": 800, "world_size": 2})

    def test_another_rank_takes_part_and_writes_nothing(self):
        self.use_torch(fake_torch(Device(), Distributed(1, 2, [0, 0])))
        dsat.report({"latency": 1})
        self.assertEqual(self.files(), ["ds_config.json"])

    def test_the_collective_runs_where_the_backend_can(self):
        for backend, kind, device in (("nccl", "cuda", "cuda:1"), ("gloo", "cuda", "cpu"), ("hccl", "npu", "npu:1"),
                                      ("cpu:gloo,cuda:nccl", "cuda", "cpu"), ("cuda:nccl", "cuda", "cuda:1"),
                                      ("xccl", "xpu", "xpu:1"), ("hccl", "none", "cpu")):
            seen = []
            distributed = Distributed(0, 2, [0, 0], backend)
            distributed.all_reduce = lambda tensor, op: seen.append(tensor.device)
            torch = fake_torch(distributed=distributed)
            setattr(torch, kind, Device(own=1))
            self.use_torch(torch)
            dsat.report({"latency": 1})
            self.assertEqual(seen, [device])

    def test_no_device_says_nothing(self):
        device = Device()
        device.is_available = lambda: False
        for torch in (fake_torch(), fake_torch(device)):
            self.use_torch(torch)
            dsat.report({"latency": 1})
            self.assertEqual(self.memory(), {})

    def test_of_a_device_that_the_script_knows_itself(self):
        class Budget(dsat.DeviceMemory):
            def peak_bytes(self):
                return 5

            def total_bytes(self):
                return 10

        dsat.report({"latency": 1}, memory=Budget())
        self.assertEqual(self.memory(), {"peak_memory": 5, "device_memory": 10})

    def test_the_scripts_own_figures_win(self):
        self.use_torch(fake_torch(Device(peak=700)))
        dsat.report({"latency": 1, "peak_memory": 123})
        self.assertEqual(self.result()["peak_memory"], 123)


if __name__ == "__main__":
    unittest.main()
