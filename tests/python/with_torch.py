"""The package with a real torch: ranks over Gloo, parameters of a real module."""
import os
import unittest

import torch
import torch.distributed
import torch.multiprocessing

import dsat
from support import PackageTest


class RankMemory(dsat.DeviceMemory):
    def __init__(self, rank):
        self.rank = rank

    def peak_bytes(self):
        return 100 + self.rank if self.rank is not None else None

    def total_bytes(self):
        return 1000 - self.rank if self.rank is not None else None


def rank_main(rank, world_size, rendezvous, with_memory):
    torch.distributed.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=world_size)
    dsat.report({"throughput": 1.0}, memory=RankMemory(rank if with_memory else None))
    torch.distributed.barrier()


class Ranks(PackageTest):
    def report_from_two(self, with_memory):
        self.begin_trial()
        torch.multiprocessing.start_processes(rank_main, (2, str(self.dir / "rendezvous"), with_memory), nprocs=2,
                                              start_method="fork")
        return self.result()

    def test_the_worst_rank_and_the_smallest_device_are_reported_once(self):
        self.assertEqual(self.report_from_two(True), {"throughput": 1.0, "peak_memory": 101, "device_memory": 999,
                                                      "world_size": 2})

    def test_what_no_rank_knows_is_left_out(self):
        self.assertEqual(self.report_from_two(False), {"throughput": 1.0, "world_size": 2})


class Module(PackageTest):
    def test_its_parameters_are_counted(self):
        self.begin_trial(model_info=True)
        model = torch.nn.Linear(3, 4)
        model.bias.requires_grad = False
        timer = dsat.StepTimer(model)
        with self.assertRaises(SystemExit), timer.forward():
            model(torch.zeros(1, 3))
        self.assertEqual(self.result("model_info.json"), {"num_params": 16, "trainable_num_params": 12})

    def test_a_tensor_is_no_metric(self):
        self.begin_trial()
        with self.assertRaisesRegex(dsat.Error, r"tensor.item\(\)"):
            dsat.report({"latency": torch.tensor(1.0)})

    def test_on_processors_torch_keeps_no_account_of_memory(self):
        memory = dsat.DeviceMemory()
        if torch.cuda.is_available():
            torch.zeros(1, device="cuda")
            self.assertGreater(memory.peak_bytes(), 0)
            self.assertGreater(memory.total_bytes(), memory.peak_bytes())
        else:
            self.assertEqual((memory.used_bytes(), memory.peak_bytes(), memory.total_bytes()), (None, None, None))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
