"""The stand-in for the package determined, as far as it needs no torch: what scripts with Core API call."""
import json
import os
import shutil
import subprocess
import sys
import threading
from unittest import mock

from support import PACKAGE, PackageTest

import determined as det
from determined import core
from determined.core import DistributedContext, PreemptMode, SearcherMode


class DeterminedTest(PackageTest):
    def setUp(self):
        super().setUp()
        for name in ("DSAT_EXPERIMENT", "LOCAL_RANK", "LOCAL_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "CROSS_RANK",
                     "MASTER_ADDR"):
            os.environ.pop(name, None)
        os.environ["MASTER_PORT"] = str(os.getpid())
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)

    def begin_experiment(self, hparams=None, **config):
        os.environ["DSAT_HPARAMS"] = self.write("hparams.json", {"deepspeed_config": "ds.json", **(hparams or {})})
        os.environ["DSAT_EXPERIMENT"] = self.write("experiment.json", config)

    def reported(self):
        return [json.loads(line) for line in (self.dir / "metrics.jsonl").read_text().splitlines()]

    def forget_what_was_said(self):
        said = mock.patch("determined._once._said", set())
        said.start()
        self.addCleanup(said.stop)

    def on_ranks(self, size, work):
        """`work(context)` on `size` ranks, each a thread; their results in order."""
        results = [None] * size

        def run(rank):
            context = DistributedContext(rank=rank, size=size, local_rank=rank, local_size=size,
                                         cross_rank=0, cross_size=1)
            try:
                results[rank] = work(context)
            except Exception as error:  # shown by the test
                results[rank] = error
            finally:
                context.close()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return results


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
                    with self.assertRaisesRegex(RuntimeError, "op.report_completed\\(\\) is for rank 0"):
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
        with self.assertRaisesRegex(det.core._distributed.Error, r"from_deepspeed\(\): the environment has no RANK"):
            DistributedContext.from_deepspeed()

    def test_horovods_numbers_make_it(self):
        class Hvd:
            rank = local_rank = cross_rank = staticmethod(lambda: 0)
            size = local_size = cross_size = staticmethod(lambda: 1)

        self.assertEqual(DistributedContext.from_horovod(Hvd).size, 1)

    def test_numbers_that_cannot_be_are_refused(self):
        good = dict(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)
        for change, words in (({"rank": None}, "give all of"), ({"rank": 1}, "rank is 1, of 1 ranks"),
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
                                (lambda t: t.report_training_metrics(1, 3), "are a dictionary"),
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
        self.forget_what_was_said()
        with core.init() as context, self.assertLogs("determined", "WARNING") as logs:
            context.profiler.on()
            context.profiler.on()
        self.assertEqual(len(logs.output), 1)


class Checkpoints(DeterminedTest):
    def test_what_was_stored_is_restored(self):
        self.begin_experiment(searcher={"max_length": 1})
        with core.init() as context:
            with context.checkpoint.store_path({"steps_completed": 3}) as (path, name):
                (path / "sub").mkdir()
                (path / "sub" / "a.txt").write_text("a")
            self.assertEqual(context.checkpoint.get_metadata(name), {"steps_completed": 3})
            self.assertEqual(det.get_cluster_info().latest_checkpoint, name)
            with context.checkpoint.restore_path(name) as path:
                self.assertEqual((path / "sub" / "a.txt").read_text(), "a")
            context.checkpoint.download(name, self.dir / "down", selector=lambda p: p.startswith("sub/"))
            self.assertEqual(sorted(p.name for p in (self.dir / "down").iterdir()), ["sub"])
            for op in context.searcher.operations():
                op.report_completed(1)
            self.assertIsNone(det.get_cluster_info().latest_checkpoint)  # the training has ended
            context.checkpoint.delete(name)
            with self.assertRaisesRegex(Exception, "is not in"):
                context.checkpoint.get_metadata(name)

    def test_a_folder_of_the_scripts_own_is_gone_on_from(self):
        self.begin_experiment(searcher={"max_length": 1})
        with core.init(checkpoint_storage="elsewhere") as context:
            with context.checkpoint.store_path({"steps_completed": 3}) as (_, name):
                pass
        self.assertEqual(det.get_cluster_info().latest_checkpoint, name)
        with core.init(checkpoint_storage="elsewhere") as context:
            with context.checkpoint.restore_path(name) as path:
                self.assertTrue(path.is_dir())
            for op in context.searcher.operations():
                op.report_completed(1)
        self.assertIsNone(det.get_cluster_info().latest_checkpoint)

    def test_a_training_interrupted_before_the_pointers_named_a_storage_goes_on(self):
        self.begin_experiment(searcher={"max_length": 1})
        (self.dir / "checkpoints" / "abc").mkdir(parents=True)
        self.write("checkpoints/latest.json", {"storage_id": "abc", "completed": False})
        self.assertEqual(det.get_cluster_info().latest_checkpoint, "abc")
        with core.init() as context:
            for op in context.searcher.operations():
                op.report_completed(1)
        self.assertIsNone(det.get_cluster_info().latest_checkpoint)

    def test_a_study_that_was_moved_goes_on(self):
        for storage in (None, "study/mine"):
            with self.subTest(storage):
                for study in ("study", "moved"):
                    shutil.rmtree(self.dir / study, ignore_errors=True)
                (self.dir / "study").mkdir()
                self.begin_experiment(searcher={"max_length": 1})
                os.environ["DSAT_HPARAMS"] = self.write("study/hparams.json", {})
                with core.init(checkpoint_storage=storage) as context:
                    with context.checkpoint.store_path({"steps_completed": 3}) as (_, name):
                        pass
                os.rename(self.dir / "study", self.dir / "moved")
                os.environ["DSAT_HPARAMS"] = str(self.dir / "moved" / "hparams.json")
                self.assertEqual(det.get_cluster_info().latest_checkpoint, name)
                with core.init() as context:
                    self.assertEqual(context.checkpoint.get_metadata(name), {"steps_completed": 3})

    def test_a_training_goes_on_from_the_studys_own_storage_before_another(self):
        self.begin_experiment(searcher={"max_length": 1})
        names = []
        for storage in (None, "export"):
            with core.init(checkpoint_storage=storage) as context:
                with context.checkpoint.store_path() as (_, name):
                    names.append(name)
        self.assertEqual(det.get_cluster_info().latest_checkpoint, names[0])
        shutil.rmtree(self.dir / "checkpoints")
        self.assertEqual(det.get_cluster_info().latest_checkpoint, names[1])
        with core.init() as context, context.checkpoint.restore_path(names[1]) as path:
            self.assertEqual(path.parent.name, "export")

    def test_outside_of_a_training_in_earnest_only_the_storage_is_written(self):
        for begin in (lambda: None, self.begin_trial):
            with self.subTest(begin):
                begin()
                before = {path.name for path in self.dir.iterdir()}
                with core.init(checkpoint_storage="elsewhere") as context:
                    with context.checkpoint.store_path():
                        pass
                self.assertEqual({path.name for path in self.dir.iterdir()}, before | {"elsewhere"})

    def test_cloud_storage_is_this_machine_and_says_so(self):
        self.begin_experiment(searcher={"max_length": 1})
        self.forget_what_was_said()
        warnings = self.assertLogs("determined", "WARNING")
        with warnings as logs, core.init(checkpoint_storage="s3://bucket/folder") as context:
            with context.checkpoint.store_path({"steps_completed": 1}) as (path, name):
                (path / "a.txt").write_text("a")
        self.assertIn("checkpoints are not sent to s3://bucket/folder: they stay in", "".join(logs.output))
        self.assertTrue((self.dir / "checkpoints" / name / "a.txt").exists())
        with core.init(checkpoint_storage=self.dir / "elsewhere") as context:  # a folder is taken
            with context.checkpoint.store_path({"steps_completed": 2}) as (path, name):
                (path / "b.txt").write_text("b")
        self.assertTrue((self.dir / "elsewhere" / name / "b.txt").exists())

    def test_every_rank_has_its_part(self):
        self.begin_experiment(searcher={"max_length": 1})

        def work(distributed):
            checkpoint = core.CheckpointContext(distributed, self.dir / "c")
            with checkpoint.store_path({"steps_completed": 1}, shard=True) as (path, name):
                (path / ("%d.txt" % distributed.rank)).write_text("x")
            own = self.dir / ("own%d" % distributed.rank)
            own.mkdir()
            (own / ("%d.bin" % distributed.rank)).write_text("y")
            (own / "left.out").write_text("z")
            uploaded = checkpoint.upload(own, {"steps_completed": 2}, shard=True, selector=lambda p: p.endswith(".bin"))
            with checkpoint.restore_path(uploaded) as path:
                files = sorted(p.name for p in path.iterdir())
            if distributed.rank == 1:
                with self.assertRaisesRegex(RuntimeError, "is for rank 0"):
                    checkpoint.upload(own)
            return name, files

        results = self.on_ranks(2, work)
        self.assertEqual(results[0], results[1])
        names = sorted(path.name for path in (self.dir / "c" / results[0][0]).iterdir())
        self.assertEqual(names, ["0.txt", "1.txt", "metadata.json"])
        self.assertEqual(results[0][1], ["0.bin", "1.bin", "metadata.json"])

    def test_metadata_that_differ_between_ranks_are_refused(self):
        def work(distributed):
            checkpoint = core.CheckpointContext(distributed, self.dir / "c")
            with checkpoint.store_path({"steps_completed": distributed.rank}, shard=True):
                pass

        for error in self.on_ranks(2, work):
            self.assertIn("'steps_completed' is 0 on one rank and 1 on another", str(error))

    def test_what_is_no_checkpoint_is_refused(self):
        with core.init() as context:
            for name, words in (("../etc", "is no id of a checkpoint"), ("", "is no id"), ("nowhere", "is not in")):
                with self.subTest(name), self.assertRaisesRegex(Exception, words):
                    with context.checkpoint.restore_path(name):
                        pass
            with self.assertRaisesRegex(Exception, "metadata of a checkpoint is a dictionary"):
                context.checkpoint.upload(self.dir, metadata=3)
            with self.assertRaisesRegex(RuntimeError, "there is no folder to keep"):
                context.checkpoint.upload(None)


class TheOrderToStop(DeterminedTest):
    SCRIPT = ("import os, signal, determined as det\n"
              "with det.core.init() as context:\n"
              "    before = context.preempt.should_preempt()\n"
              "    os.kill(os.getpid(), signal.SIGTERM)\n"
              "    print(before, context.preempt.should_preempt(), flush=True)\n"
              "    os.kill(os.getpid(), signal.SIGTERM)\n"
              "    print('still here')\n")

    def run_script(self):
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        return subprocess.run([sys.executable, "-S", "-c", self.SCRIPT],
                              env=environment, capture_output=True, text=True, timeout=60)

    def test_sigterm_is_one_and_the_second_ends(self):
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
        with self.assertRaisesRegex(RuntimeError, "as a context manager"):
            core.init().preempt.should_preempt()

    def test_invalid_hyperparameters_end_with_one_line(self):
        with self.assertRaisesRegex(SystemExit, "^InvalidHP: too wide$"):
            with core.init():
                raise det.InvalidHP("too wide")


class WhatIsNotThere(DeterminedTest):
    def test_it_is_refused_by_name_with_the_reason(self):
        for statement, words in (("import determined.keras", "has no determined.keras: TensorFlow"),
                                 ("from determined.experimental import client",
                                  "has no determined.experimental: .*master"),
                                 ("import determined.lightning", "has no determined.lightning: its Trainer"),
                                 ("import determined.horovod", "has no determined.horovod: Horovod"),
                                 ("import determined.searcher", "has no determined.searcher: .*searcher plugin"),
                                 ("from determined.core import Foo", "has no determined.core.Foo: docs/migrate"),
                                 ("import determined.nonsense", "has no determined.nonsense: docs/migrate")):
            with self.subTest(statement), self.assertRaisesRegex(ImportError, words):
                exec(statement)
        with self.assertRaisesRegex(AttributeError, "has no determined.submit"):
            det.submit()
        self.assertFalse(hasattr(det, "submit"))
        with core.init() as context:
            for part, name in ((context, "Context"), (context.train, "TrainContext"),
                               (context.searcher, "SearcherContext"), (context.checkpoint, "CheckpointContext"),
                               (context.preempt, "PreemptContext")):
                with self.subTest(name), self.assertRaisesRegex(AttributeError, f"has no {name}.submit: docs/migrate"):
                    part.submit()

    def test_import_from_path_forgets_what_it_imported(self):
        (self.dir / "code").mkdir()
        (self.dir / "code" / "of_a_checkpoint.py").write_text("x = 3\n")
        with det.import_from_path(self.dir / "code"):
            import of_a_checkpoint
            self.assertEqual(of_a_checkpoint.x, 3)
        self.assertNotIn("of_a_checkpoint", sys.modules)


class TheRealPackage(DeterminedTest):
    def setUp(self):
        super().setUp()
        real = self.dir / "site" / "determined"
        real.mkdir(parents=True)
        (real / "__init__.py").write_text("name = 'real'\ndef get_cluster_info():\n    return None\n")
        (real / "part.py").write_text("x = 1\n")

    def run_with(self, path, script):
        result = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, timeout=60,
                                env=dict(os.environ, PYTHONPATH=f"{PACKAGE}:{path}"))
        return result.stdout.strip(), result.stderr

    def test_within_an_experiment_the_stand_in_stays(self):
        self.begin_experiment({"lr": 3})
        script = "import determined\nprint(determined.get_cluster_info().trial.hparams['lr'])\n"
        self.assertEqual(self.run_with(self.dir / "site", script), ("3", ""))

    def test_it_takes_the_stand_ins_place(self):
        (self.dir / "empty" / "determined").mkdir(parents=True)  # a folder of that name is no package
        (self.dir / "copy").mkdir()
        for name in ("determined", "dsat"):  # of another installation; two of them do not give way to each other
            shutil.copytree(PACKAGE / name, self.dir / "copy" / name)
        behind_a_copy = f"{self.dir / 'copy'}:{self.dir / 'site'}"
        for path, expected in ((self.dir / "site", "real"), (self.dir / "empty", "stand-in"),
                               (self.dir / "copy", "stand-in"), (behind_a_copy, "real")):
            with self.subTest(expected):
                script = ("import determined\nname = getattr(determined, 'name', 'stand-in')\nprint(name)\n"
                          "if name == 'real':\n    from determined.part import x\n")
                self.assertEqual(self.run_with(path, script), (expected, ""))
