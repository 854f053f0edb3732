"""Reducers, data loaders and samplers of the stand-in for determined: they want torch, and no engine."""
import multiprocessing.reduction
import pickle
import unittest

import numpy as np
import torch
import torch.multiprocessing  # noqa: F401: it tells multiprocessing how to write tensors

from support import PackageTest

from determined import pytorch
from determined.pytorch import samplers


class Reducers(PackageTest):
    def context(self, ranks=1):
        from determined.pytorch._reducer import ReducerContext

        return ReducerContext(lambda value: [value] * ranks)

    def test_functions_and_classes(self):
        class Largest(pytorch.MetricReducer):
            def reset(self):
                self.value = 0

            def update(self, value):
                self.value = max(self.value, value)

            def per_slot_reduce(self):
                return self.value

            def cross_slot_reduce(self, per_slot_metrics):
                return {"largest": max(per_slot_metrics), "ranks": len(per_slot_metrics)}

        context = self.context(ranks=2)
        mean = context.wrap_reducer(lambda values: sum(values) / len(values), name="mean", for_training=False)
        largest = context.wrap_reducer(Largest())
        context.reset_reducers()
        for value in (1, 5):
            mean.update(value)
            largest.update(value)
        self.assertEqual(context.reduce_metrics(for_training=True), {"largest": 5, "ranks": 2})
        self.assertEqual(context.reduce_metrics(for_training=False), {"mean": 3, "largest": 5, "ranks": 2})

    def test_tensors_that_numpy_has_no_type_for_become_floats(self):
        from determined.pytorch._reducer import to_numpy

        arrays = to_numpy({"loss": torch.tensor(1.5, dtype=torch.bfloat16), "half": torch.tensor(0.5).half(), "n": 3})
        self.assertEqual((arrays["loss"].dtype, float(arrays["loss"])), (np.float32, 1.5))
        self.assertEqual((arrays["half"].dtype, arrays["n"]), (np.float16, 3))

    def test_values_come_in_the_order_of_the_data(self):
        from determined.pytorch._reducer import ReducerContext

        context = ReducerContext(lambda value: [[[0, 2, 4]], [[1, 3]]])
        context.wrap_reducer(lambda values: {"order": list(values)})
        self.assertEqual(context.reduce_metrics(for_training=True), {"order": [0, 1, 2, 3, 4]})

    def test_mistakes(self):
        def named(values):
            return {"x": 1}

        context = self.context()
        context.wrap_reducer(named, name="x")
        with self.assertRaisesRegex(AssertionError, "reducer named is named 'x'"):
            context.reduce_metrics(for_training=True)
        context = self.context()
        reducer = context.wrap_reducer(lambda values: 1)
        with self.assertRaisesRegex(AssertionError, "no name"):
            context.reduce_metrics(for_training=True)
        with self.assertRaisesRegex(AssertionError, "twice"):
            context.wrap_reducer(reducer)
        with self.assertRaisesRegex(AssertionError, "not a int"):
            context.wrap_reducer(3)
        context = self.context()
        context.wrap_reducer(lambda values: 1 / 0, name="y")
        with self.assertRaisesRegex(ValueError, "failed in cross_slot_reduce\\(\\): ZeroDivisionError"):
            context.reduce_metrics(for_training=True)


class Schedulers(PackageTest):
    def scheduler(self, step_mode=pytorch.LRScheduler.StepMode.MANUAL_STEP, **more):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        return pytorch.LRScheduler(torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5), step_mode, **more)

    def test_it_steps_tells_its_rate_and_is_kept(self):
        scheduler = self.scheduler()
        scheduler._scheduler.optimizer.step()
        scheduler.step()
        self.assertEqual(scheduler.get_last_lr(), [0.5])
        other = self.scheduler()
        other.load_state_dict(scheduler.state_dict())
        self.assertEqual(other.get_last_lr(), [0.5])

    def test_when_it_steps_must_be_one_of_its_modes(self):
        with self.assertRaisesRegex(ValueError, "step_mode is 3"):
            self.scheduler(3)
        with self.assertRaisesRegex(ValueError, "frequency is 0"):
            self.scheduler(frequency=0)


class Ranks(PackageTest):
    def test_tensors_travel_by_their_values(self):
        from determined.core._ranks import _Pickler

        tensor = torch.arange(3.0, requires_grad=True) * 2
        written = _Pickler.bytes_of({"loss": tensor})
        # What multiprocessing writes of a tensor is a handle of memory that this process lends to its own children.
        self.assertIn(b"rebuild_storage", bytes(multiprocessing.reduction.ForkingPickler.dumps(tensor.detach())))
        self.assertNotIn(b"rebuild_storage", written)
        self.assertEqual(pickle.loads(written)["loss"].tolist(), [0, 2, 4])


class Data(PackageTest):
    def test_a_loader_is_repeated_shared_and_begun_in_the_middle(self):
        loader = pytorch.DataLoader(list(range(10)), batch_size=2)
        self.assertEqual([b.tolist() for b in loader], [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]])
        of_rank = loader.get_data_loader(repeat=True, skip=1, num_replicas=2, rank=1)
        batches = iter(of_rank)
        self.assertEqual([next(batches).tolist() for _ in range(3)], [[6, 7], [0, 1], [4, 5]])
        self.assertEqual((len(loader), len(of_rank)), (5, 2))

    def test_ranks_that_share_a_seed_share_an_order(self):
        orders = []
        for rank in range(2):
            torch.manual_seed(rank)
            loader = pytorch.DataLoader(list(range(32)), batch_size=32, shuffle=True)
            loader.share_order(7)
            orders.append(next(iter(loader)).tolist())
        self.assertEqual(*orders)
        loader.share_order(8)
        self.assertNotEqual(next(iter(loader)).tolist(), orders[0])
        plain = pytorch.DataLoader([1, 2], batch_size=2)
        plain.share_order(7)
        self.assertEqual(next(iter(plain)).tolist(), [1, 2])

    def test_workers_collate_and_samplers(self):
        loader = pytorch.DataLoader(list(range(6)), batch_size=3, sampler=[5, 4, 3, 2, 1, 0], num_workers=1,
                                    collate_fn=sum, prefetch_factor=2)
        self.assertEqual(list(loader), [12, 3])

    def test_what_a_loader_refuses(self):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(())

        for arguments, words in (((Stream(),), "Stream is an IterableDataset"), (([1], None), "batch_size=None"),
                                 (([1], 2, True, [0]), "sampler"), (([1], -1), "batch_size")):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                pytorch.DataLoader(*arguments)
        for named in ({"num_workers": -1}, {"timeout": -1}, {"persistent_workers": True},
                      {"num_workers": 0, "prefetch_factor": 3}):
            with self.subTest(named), self.assertRaises(ValueError):
                pytorch.DataLoader([1], **named)

    def test_samplers(self):
        plain = [0, 1, 2, 3, 4]
        self.assertEqual(list(samplers.DistributedSampler(plain, 2, 1)), [1, 3])
        self.assertEqual([len(samplers.DistributedBatchSampler(plain, 3, r)) for r in range(3)], [2, 2, 1])
        self.assertEqual((list(samplers.SkipSampler(plain, 3)), len(samplers.SkipBatchSampler(plain, 3))), ([3, 4], 5))
        repeated = iter(samplers.RepeatSampler(plain))
        self.assertEqual([next(repeated) for _ in range(7)], [0, 1, 2, 3, 4, 0, 1])
        self.assertEqual(list(samplers.RepeatBatchSampler([])), [])
        shuffled = samplers.ReproducibleShuffleSampler(plain, 7)
        first, second = list(shuffled), list(shuffled)
        self.assertEqual((sorted(first), first, first == second),
                         (plain, list(samplers.ReproducibleShuffleBatchSampler(plain, 7)), False))
        for arguments in ((0, 0), (2, 2), (2, -1)):
            with self.subTest(arguments), self.assertRaises(ValueError):
                samplers.DistributedBatchSampler(plain, *arguments)

    def test_batches_move_and_are_counted(self):
        moved = pytorch.to_device({"a": np.ones(2), "b": [torch.ones(3), ("x", 4)]}, torch.device("cpu"))
        self.assertIsInstance(moved["a"], torch.Tensor)
        self.assertEqual(moved["b"][1], ("x", 4))
        batches = (np.ones(2), {"a": torch.ones(3)}, [torch.ones(4)], (np.ones(5),))
        self.assertEqual([pytorch.data_length(batch) for batch in batches], [2, 3, 4, 5])
        for bad in ({}, [], 3):
            with self.subTest(bad), self.assertRaisesRegex((ValueError, TypeError), "a batch is a"):
                pytorch.data_length(bad)


if __name__ == "__main__":
    unittest.main()
