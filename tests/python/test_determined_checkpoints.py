"""The stand-in for the package determined: the checkpoints that a script with Core API keeps and goes on from."""
import os
import shutil

from determined_support import DeterminedTest

import determined as det
from determined import core


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
        self.forget_what_was_logged()
        warnings = self.assertLogs("determined", "WARNING")
        with warnings as logs, core.init(checkpoint_storage="s3://bucket/folder") as context:
            with context.checkpoint.store_path({"steps_completed": 1}) as (path, name):
                (path / "a.txt").write_text("a")
        self.assertIn("not sent to s3://bucket/folder", "".join(logs.output))
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
            self.assertIn("'steps_completed' is 0", str(error))

    def test_what_is_no_checkpoint_is_refused(self):
        with core.init() as context:
            for name, words in (("../etc", "is no id"), ("", "is no id"), ("nowhere", "is not in")):
                with self.subTest(name), self.assertRaisesRegex(Exception, words):
                    with context.checkpoint.restore_path(name):
                        pass
            with self.assertRaisesRegex(Exception, "metadata of a checkpoint"):
                context.checkpoint.upload(self.dir, metadata=3)
            with self.assertRaisesRegex(RuntimeError, "no folder"):
                context.checkpoint.upload(None)
