"""The stand-in for the package determined, without torch: what a script with Core API gets and reports."""
import json
import os
import subprocess
import sys

from determined_support import DeterminedTest
from support import PACKAGE

import determined as det
from determined import core
from determined.core import DistributedContext, PreemptMode, SearcherMode


class TheCluster(DeterminedTest):
    def test_outside_of_an_experiment_there_is_none(self):
        self.assertIsNone(det.get_cluster_info())

    def test_within_one_it_tells_the_trial(self):
        self.begin_experiment({"lr": 3}, data={"url": "x"}, reproducibility={"experiment_seed": 7})
        os.environ.update(DSAT_TRIAL_ID="5", CUDA_VISIBLE_DEVICES="2,3", WORLD_SIZE="2")
        info = det.get_cluster_info()
        self.assertEqual((info.trial.trial_id, info.trial.trial_seed, info.trial.hparams["lr"]), (5, 7, 3))
        self.assertEqual((info.task_type, info.user_data, info.slot_ids), ("TRIAL", {"url": "x"}, [0, 1]))
        self.assertEqual((info.container_rank, info.container_slot_counts, info.gpu_uuids), (0, [2], ["2", "3"]))
        self.assertIsNone(info.latest_checkpoint)
        self.assertEqual(info.trial._config["hyperparameters"], info.trial.hparams)

    def test_keys_that_a_script_may_index_are_there(self):
        self.begin_experiment(resources={"slots_per_trial": 4}, searcher={"metric": "loss"})
        config = det.get_cluster_info().trial._config
        self.assertEqual((config["resources"]["slots_per_trial"], config["searcher"]["metric"]), (4, "loss"))
        self.assertIs(config["searcher"]["smaller_is_better"], True)
        self.assertIn("container_path", config["checkpoint_storage"])
        self.begin_experiment()
        self.assertEqual(det.get_cluster_info().trial._config["resources"]["slots_per_trial"], 1)

    def test_a_trial_without_an_experiment_file_has_its_configuration_as_hyperparameters(self):
        path = self.begin_trial()
        self.assertEqual(det.get_cluster_info().trial.hparams["deepspeed_config"], path)

    def test_a_damaged_experiment_file_is_named(self):
        self.begin_experiment()
        self.write("experiment.json", "{")
        with self.assertRaisesRegex(Exception, r"^DSAT_EXPERIMENT=.*experiment.json: "):
            det.get_cluster_info()


class TheSearcher(DeterminedTest):
    def lengths(self):
        with core.init() as context:
            found = []
            for op in context.searcher.operations():
                found.append(op.length)
                op.report_completed(0.5)
            return found

    def test_one_operation_of_the_experiments_length(self):
        for given, length, unit in ((7, 7, None), ({"epochs": 3}, 3, core.Unit.EPOCHS),
                                    ({"batches": 9}, 9, core.Unit.BATCHES)):
            with self.subTest(given):
                self.begin_experiment(searcher={"max_length": given})
                self.assertEqual(self.lengths(), [length])
                with core.init() as context:
                    self.assertEqual(context.searcher.get_configured_units(), unit)

    def test_a_trial_is_as_long_as_its_engine_needs(self):
        self.begin_trial(end=5)
        self.assertGreater(self.lengths()[0], 6)
        self.begin_trial(model_info=True)
        self.assertEqual(self.lengths(), [1])

    def test_outside_it_is_one(self):
        self.assertEqual(self.lengths(), [1])

    def test_lengths_that_are_none_are_refused_by_name(self):
        for length in (0, -1, "ten", True, 1.5, {"epochs": "x"}, {"years": 3}):
            with self.subTest(length):
                self.begin_experiment(searcher={"max_length": length})
                with self.assertRaisesRegex(Exception, "searcher.max_length is"):
                    core.init()

    def test_an_operation_is_completed_once_and_before_the_next(self):
        with core.init() as context:
            operations = context.searcher.operations()
            op = next(operations)
            op.report_progress(0.5)
            with self.assertRaisesRegex(RuntimeError, "before op.report_completed"):
                next(operations)
            op.report_completed(1.0)
            with self.assertRaisesRegex(RuntimeError, "twice"):
                op.report_completed(1.0)
            with self.assertRaisesRegex(RuntimeError, "the operation is over"):
                op.report_progress(0.7)

    def test_other_ranks_may_not_report(self):
        def work(distributed):
            searcher = core.SearcherContext(distributed, 4, None)
            with self.assertRaisesRegex(RuntimeError, "rank 0"):
                if distributed.rank == 0:
                    raise RuntimeError("rank 0")
                next(searcher.operations(SearcherMode.ChiefOnly))
            lengths = []
            for op in searcher.operations():
                lengths.append(op.length)
                if distributed.rank == 0:
                    op.report_completed(1)
                else:
                    with self.assertRaisesRegex(RuntimeError, "for rank 0"):
                        op.report_completed(1)
                    break
            return lengths

        self.assertEqual(self.on_ranks(2, work)[0], [4])


class TheRanks(DeterminedTest):
    def test_objects_travel_between_them(self):
        def work(context):
            found = [context.gather({"r": context.rank}), context.allgather(context.rank),
                     context.broadcast("of %d" % context.rank), context.gather_local(1),
                     context.allgather_local(context.rank), context.broadcast_local(context.rank)]
            numbers = (context.get_rank(), context.get_size(), context.get_local_rank(), context.get_num_agents())
            self.assertEqual(numbers, (context.rank, 3, context.rank, 1))
            return found

        first, second, third = self.on_ranks(3, work)
        self.assertEqual(first, [[{"r": 0}, {"r": 1}, {"r": 2}], [0, 1, 2], "of 0", [1, 1, 1], [0, 1, 2], 0])
        self.assertEqual(second, [None, [0, 1, 2], "of 0", None, [0, 1, 2], 0])
        self.assertEqual(third, second)

    def test_a_rank_that_ends_is_named_to_the_others(self):
        first, _ = self.on_ranks(2, lambda context: context.gather(1) if context.rank == 0 else context.close())
        self.assertIn("rank 1 has ended", str(first))

    def test_what_an_earlier_run_left_does_not_mislead(self):
        from determined.core import _ranks

        path = _ranks.rendezvous_file("all")
        with open(path, "w") as file:
            json.dump({"address": ["127.0.0.1", 9], "key": "00"}, file)
        self.assertEqual(self.on_ranks(2, lambda context: context.allgather(context.rank)), [[0, 1], [0, 1]])
        self.assertFalse(os.path.exists(path))

    def test_the_launchers_variables_make_it(self):
        os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_SIZE="1")
        for make in (DistributedContext.from_deepspeed, DistributedContext.from_torch_distributed):
            with make() as context:
                self.assertEqual((context.rank, context.size, context.local_size, context.cross_size), (0, 1, 1, 1))
        del os.environ["RANK"]
        with self.assertRaisesRegex(det.core._distributed.Error, r"from_deepspeed\(\): the environment"):
            DistributedContext.from_deepspeed()

    def test_horovods_numbers_make_it(self):
        class Hvd:
            rank = local_rank = cross_rank = staticmethod(lambda: 0)
            size = local_size = cross_size = staticmethod(lambda: 1)

        self.assertEqual(DistributedContext.from_horovod(Hvd).size, 1)

    def test_numbers_that_cannot_be_are_refused(self):
        good = dict(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)
        for change, words in (({"rank": None}, "give all of"), ({"rank": 1}, "rank is 1"),
                              ({"cross_size": 2}, "chief_ip")):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                DistributedContext(**{**good, **change})

    def test_several_ranks_need_a_context(self):
        os.environ["WORLD_SIZE"] = "2"
        with self.assertRaisesRegex(ValueError, "core.init\\(\\) needs distributed="):
            core.init()


class Metrics(DeterminedTest):
    def test_they_are_kept_line_by_line(self):
        self.begin_experiment(searcher={"metric": "loss", "max_length": 1})
        with core.init() as context:
            self.assertIsNone(context.train.get_experiment_best_validation())
            context.train.report_training_metrics(1, {"loss": 2.0}, [{"loss": 1.0}, {"loss": 3.0}])
            context.train.report_validation_metrics(1, {"loss": 3.0, "raw": b"x", "bad": float("nan")})
            context.train.report_validation_metrics(2, {"loss": 2.5})
            context.train.report_metrics("own", 2, {"a": [1, 2]})
            self.assertEqual(context.train.get_experiment_best_validation(), 2.5)
        self.assertEqual([(m["group"], m["steps_completed"]) for m in self.reported()],
                         [("training", 1), ("validation", 1), ("validation", 2), ("own", 2)])
        self.assertEqual(self.reported()[1]["metrics"], {"loss": 3.0, "bad": "nan"})

    def test_a_torn_line_is_left_out_and_takes_none_with_it(self):
        self.begin_experiment(searcher={"metric": "loss", "max_length": 1})
        with core.init() as context:
            context.train.report_validation_metrics(1, {"loss": 3.0})
            with open(self.dir / "metrics.jsonl", "a") as file:
                file.write('{"group": "valid')
            self.assertEqual(context.train.get_experiment_best_validation(), 3.0)
            context.train.report_validation_metrics(2, {"loss": 2.0})
            self.assertEqual(context.train.get_experiment_best_validation(), 2.0)

    def test_what_cannot_be_reported_is_refused(self):
        self.begin_experiment(searcher={"max_length": 1})
        with core.init() as context:
            for call, words in ((lambda t: t.report_validation_metrics(1, {"x": None}), "metric 'x' is None"),
                                (lambda t: t.report_metrics("a.b", 1, {}), "has a dot"),
                                (lambda t: t.report_training_metrics(1, 3), "metrics of training .* 3"),
                                (lambda t: t.report_progress(2), "from 0 to 1"),
                                (lambda t: t.report_early_exit("bored"), "bored")):
                with self.subTest(words), self.assertRaisesRegex(Exception, words):
                    call(context.train)

    def test_what_one_machine_has_no_use_for_does_nothing(self):
        with core.init() as context:
            context.train.set_status("x")
            context.train.report_progress(0.5)
            context.train.set_metadata({"a": 1})
            self.assertEqual(context.train.get_metadata(), {"a": 1})
            self.assertTrue(context.train.get_tensorboard_path().is_dir())
            context.train.upload_tensorboard_files()
            context.profiler.on()
            context.profiler.off()
            context.experimental.report_task_using_checkpoint(None)
            context.alert(title="x")
            context.searcher.acknowledge_out_of_ops()
            context.preempt.acknowledge_preemption_signal()

    def test_such_a_method_says_so_once(self):
        self.forget_what_was_logged()
        with core.init() as context, self.assertLogs("determined", "WARNING") as logs:
            context.profiler.on()
            context.profiler.on()
        self.assertEqual(len(logs.output), 1)


class TheOrderToStop(DeterminedTest):
    SCRIPT = ("import os, signal, determined as det\n"
              "with det.core.init() as context:\n"
              "    before = context.preempt.should_preempt()\n"
              "    os.kill(os.getpid(), signal.SIGTERM)\n"
              "    os.kill(os.getpid(), signal.SIGTERM)\n"  # a launcher's, for the same order
              "    print(before, context.preempt.should_preempt(), flush=True)\n"
              "    det.core._preempt._SAME_ORDER_SECONDS = 0\n"
              "    os.kill(os.getpid(), signal.SIGTERM)\n"
              "    print('still here')\n")

    def run_script(self):
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        return subprocess.run([sys.executable, "-S", "-c", self.SCRIPT],
                              env=environment, capture_output=True, text=True, timeout=60)

    def test_sigterm_is_one_and_a_later_one_ends(self):
        result = self.run_script()
        self.assertEqual((result.stdout, result.returncode), ("False True\n", -15))

    def test_a_trial_leaves_signals_alone(self):
        self.begin_trial()
        self.assertEqual((self.run_script().stdout, self.run_script().returncode), ("", -15))

    def test_modes(self):
        with core.init(preempt_mode=PreemptMode.ChiefOnly) as context:
            self.assertFalse(context.preempt.should_preempt())
            with self.assertRaisesRegex(RuntimeError, "called twice"):
                context.preempt.start()
        with self.assertRaisesRegex(RuntimeError, "core.init"):
            core.init().preempt.should_preempt()

    def test_invalid_hyperparameters_end_with_one_line(self):
        with self.assertRaisesRegex(SystemExit, "^InvalidHP: too wide$"):
            with core.init():
                raise det.InvalidHP("too wide")
