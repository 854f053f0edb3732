"""A model exported from Python by Debian's python3-torch: dsat-trial trains it at every stage, and it is tuned."""
import json
import re
import subprocess
import tempfile
import unittest

from forked_trials import run_dsat_trial
from support import BUILD, FIXTURES, HostTest, PROJECT

PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to
EXAMPLE = PROJECT / "examples/trials/torchscript"


class TorchScript(HostTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.folder.name + "/model.pt"
        subprocess.run([PYTHON, EXAMPLE / "export.py", cls.model, "--width", "8"], check=True)
        subprocess.run([PYTHON, FIXTURES / "torchscript_models.py", cls.folder.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        super().tearDownClass()

    def file(self, name):
        return f"{self.folder.name}/{name}.pt"

    def run_trial(self, *options, model=None, spec="float:3x16x16", timeout=120):
        """Of the exported model or another, with ds.json."""
        return run_dsat_trial("--torchscript", model or self.model, "--input-spec", spec, "--deepspeed_config",
                              "ds.json", *options, cwd=self.dir, timeout=timeout)

    def train(self, config, *extra, **of):
        config = {**config, "autotuning": {"enabled": True, "start_profile_step": 1, "end_profile_step": 3,
                                           "metric_path": str(self.dir / "metrics.json")}}
        (self.dir / "ds.json").write_text(json.dumps(config))
        result = self.run_trial(*extra, **of)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads((self.dir / "metrics.json").read_text())

    def test_every_stage_follows_one_process_in_fp32(self):
        expected = self.train({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2})["losses"]
        self.assertNotAlmostEqual(expected[0], expected[-1], places=4)
        for stage in range(4):
            zero = {"stage": stage, "overlap_comm": stage % 2 == 1, "reduce_bucket_size": 500}
            config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": zero}
            losses = self.train(config, "--ranks", 2)["losses"]
            for one, other in zip(losses, expected):
                self.assertAlmostEqual(one, other, delta=1e-5 * other, msg=f"stage {stage}")

    def test_at_stage_3_no_rank_reads_the_whole_module(self):
        peaks = {stage: self.train({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage}},
                                   "--ranks", 4, model=self.file("deep"), spec="float:512")
                 for stage in (0, 3)}
        whole = 12 * 512 * 512 * 4
        self.assertGreater(peaks[0]["load_peak_memory"], whole)
        self.assertLess(peaks[3]["load_peak_memory"], 1.4 * peaks[3]["model_state_bytes"])
        self.assertEqual(peaks[3]["losses"][0], peaks[0]["losses"][0])

    def test_a_pipeline_of_its_layers_follows_one_process(self):
        expected = self.train({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})["losses"]
        for stage, recomputed in ((0, ()), (1, ("--activation-checkpointing",))):
            config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
                      "pipeline": {"stages": 2}, "zero_optimization": {"stage": stage}}
            losses = self.train(config, "--ranks", 4, *recomputed)["losses"]
            for one, other in zip(losses, expected):
                self.assertAlmostEqual(one, other, delta=1e-5 * other, msg=f"stage {stage}")

    def test_a_checkpoint_passes_between_a_pipeline_and_one_stage(self):
        config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
                  "optimizer": {"type": "Adam", "params": {"lr": 1e-2}}}

        def losses(folder, steps, stages):
            (self.dir / "ds.json").write_text(json.dumps({**config, "pipeline": {"stages": stages}}))
            result = self.run_trial("--ranks", stages, "--steps", steps, "--checkpoint-dir", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            return [float(loss) for loss in re.findall(r"^step .* loss (\S+)", result.stdout, re.M)]

        expected = losses("whole", 6, 1)
        found = losses("cut", 2, 2) + losses("cut", 4, 1) + losses("cut", 6, 2)
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertAlmostEqual(one, other, delta=1e-5 * other)

    def test_a_pipeline_refuses_layers_that_share_a_parameter(self):
        (self.dir / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
        result = self.run_trial("--ranks", 2, "--pipeline-stages", 2, model=self.file("tied"), spec="float:4",
                                timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"\A.*a pipeline: 0.weight and 2.weight .* are one parameter.*\n\Z")

    def test_activation_checkpointing_trains_the_same_in_less_memory(self):
        config = {"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 2,
                  "zero_optimization": {"stage": 3, "overlap_comm": True}}
        kept = self.train(config, "--ranks", 2)
        recomputed = self.train(config, "--ranks", 2, "--activation-checkpointing")
        for one, other in zip(recomputed["losses"], kept["losses"]):
            self.assertAlmostEqual(one, other, delta=1e-6 * other)
        self.assertLess(recomputed["peak_memory"], 0.97 * kept["peak_memory"])
        by_interval = self.train({**config, "pipeline": {"activation_checkpoint_interval": 2}}, "--ranks", 2)
        self.assertEqual(by_interval["losses"], recomputed["losses"])
        self.assertLess(by_interval["peak_memory"], 0.97 * kept["peak_memory"])

    def test_what_is_no_sequential_is_neither_recomputed_nor_cut(self):
        interval = "pipeline.activation_checkpoint_interval"
        for options, layers, who in ((["--activation-checkpointing"], 0, "--activation-checkpointing"),
                                     ([], 1, interval), (["--ranks", "2", "--pipeline-stages", "2"], 0, "a pipeline")):
            (self.dir / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 1,
                                                          "pipeline": {"activation_checkpoint_interval": layers}}))
            result = self.run_trial(*options, model=self.file("net"), spec="float:4", timeout=60)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertRegex(result.stderr, rf"\A.*{who}: the TorchScript module is a Net; .*Sequential.*\n\Z")

    def losses_of(self, model, *options, config=None):
        """Those of one of the fixture's models, trained on one float of four, with further options."""
        (self.dir / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, **(config or {})}))
        result = self.run_trial("--steps", 2, "--loss", "mean", *options, model=self.file(model), spec="float:4")
        self.assertEqual(result.returncode, 0, result.stderr)
        return re.findall(r"^step .* loss (\S+)", result.stdout, re.M)

    def test_a_segment_that_wants_no_gradient_is_recomputed_too(self):
        for model in ("flattened", "frozen"):
            self.assertEqual(len(self.losses_of(model, "--activation-checkpointing")), 2)

    def test_buffers_of_any_type_are_those_of_the_first_rank(self):
        for dtype in ("complex64", "int16", "bool"):
            self.assertEqual(len(self.losses_of(dtype, "--ranks", "2")), 2)

    def test_dropout_follows_the_seed(self):
        first, second = (self.losses_of("dropout", "--seed", seed) for seed in ("1", "2"))
        self.assertEqual(self.losses_of("dropout", "--seed", "1"), first)
        self.assertNotEqual(first, second)

    def test_a_stage_that_ignores_its_input_sends_no_gradient_back(self):
        expected = self.losses_of("ones")
        cut = self.losses_of("ones", "--ranks", "3", config={"pipeline": {"stages": 3}})
        for one, other in zip(cut, expected):
            self.assertAlmostEqual(float(one), float(other), delta=1e-5 * abs(float(other)))

    def test_bf16_and_out_of_memory(self):
        bf16 = self.train({"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True},
                           "zero_optimization": {"stage": 3}})
        self.assertEqual(bf16["precision"], "bf16")
        (self.dir / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 512}')
        result = self.run_trial("--device-memory", "4MiB")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr.splitlines()[-1], r"^dsat-trial: OutOfMemoryError: .* \(rank 0\)$")

    def test_inputs_that_do_not_fit_are_reported_with_their_cause(self):
        (self.dir / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 2}')
        result = self.run_trial(spec="float:4x16x16", timeout=60)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"\A.*the TorchScript module failed: .*expected.*3 channels.*\(rank 0\)\n\Z")

    def test_it_is_tuned(self):
        (self.dir / "ds_config.json").write_text((EXAMPLE / "ds_config.json").read_text())
        command = [str(BUILD / "dsat-trial"), "--torchscript", self.model, "--input-spec", "float:3x16x16",
                   "--ranks", "2", "--device-memory", "64MiB", "--deepspeed_config", "ds_config.json"]
        result = self.run_host(["--max-trials", 4, "--output-dir", "out"], command)
        self.assert_ok(result)
        study = self.show(self.dir / "out")
        self.assertEqual(study["profile"]["world_size"], 2)
        self.assertIn("completed", {trial["outcome"] for trial in study["trials"]})

    def test_one_number_a_sample_is_no_class_whatever_the_micro_batch(self):
        for micro_batch in (1, 2):
            (self.dir / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": micro_batch}))
            model = self.file("one_number_a_sample")
            result = self.run_trial("--steps", 1, model=model, spec="float:4", timeout=60)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"({micro_batch}, 1): add --loss mean", result.stderr)
        self.assertEqual(len(self.losses_of("one_number_a_sample")), 2)

    def test_what_is_no_module_is_named(self):
        (self.dir / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
        no_module = "is no TorchScript module"
        for file, says in (("nowhere.pt", "cannot be read"),
                           (".", "is no TorchScript module"),
                           ("ds.json", no_module), (self.file("state"), no_module)):
            result = self.run_trial(model=file, spec="float:3", timeout=60)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(f"--torchscript {file}: {says}", result.stderr)

    def test_a_checkpoint_that_has_all_steps_says_so(self):
        (self.dir / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
        for steps, says in ((3, "step 3/3"), (2, "3 steps of 2")):
            result = self.run_trial("--steps", steps, "--checkpoint-dir", "ckpt", timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(says, result.stdout)


if __name__ == "__main__":
    unittest.main()
