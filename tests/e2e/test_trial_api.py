"""Trials of a user's own under dsat-trial: the loop, metrics, bad input, and tuning."""
import json
import os
import re
import shlex
import struct
import subprocess
import unittest
import zlib

from forked_trials import run_dsat_trial
from support import BUILD, PROJECT, HostTest

TRIALS = BUILD / "tests/trials"
CONFIG = {
    "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
    "optimizer": {"type": "Adam", "params": {"lr": 0.01}}, "zero_optimization": {"stage": 1},
}


class TrialTest(HostTest):
    def setUp(self):
        super().setUp()
        self.write_config(CONFIG)

    def arguments_of(self, *options, ranks=2, library="points_trial", hparams=None, experiment=None,
                     file="experiment.json"):
        content = {"hyperparameters": {"width": 8, **(hparams or {})}, **(experiment or {})}
        (self.dir / "experiment.json").write_text(json.dumps(content))
        path = TRIALS / f"lib{library}.so" if "/" not in library else library
        return ["--trial", path, "--ranks", ranks, "--deepspeed_config", "ds_config.json",
                "--experiment", file, *options]

    def run_trial(self, *options, timeout=240, **how):
        return run_dsat_trial(*self.arguments_of(*options, **how), cwd=self.dir, timeout=timeout)

    def command_of(self, *options, **how):
        """The same as a command of its own."""
        return [str(word) for word in [BUILD / "dsat-trial", *self.arguments_of(*options, **how)]]

    def metrics(self, phase, name="metrics.jsonl"):
        lines = [json.loads(line) for line in (self.dir / name).read_text().splitlines()]
        return {line["batch"]: line["metrics"] for line in lines if line["phase"] == phase}

    def training_losses(self, name):
        """By batch."""
        return {batch: metrics["loss"] for batch, metrics in self.metrics("training", name).items()}

    def latest(self):
        """The steps of the latest checkpoint."""
        return int(json.loads((self.dir / "ckpt/latest.json").read_text())["checkpoint"].removeprefix("step-"))

    def signal_after(self, line, number, *options, **how):
        """A trial that gets a signal once it has printed a line that begins so: its exit status and stderr."""
        process = subprocess.Popen(self.command_of(*options, **how), cwd=self.dir,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for text in process.stdout:
            if text.startswith(line):
                break
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
        return process.returncode, stderr

    def diary(self, rank=0):
        return (self.dir / f"diary{rank}").read_text().splitlines()


class Training(TrialTest):
    def test_two_ranks_train_validate_and_report(self):
        result = self.run_trial("--epochs", 2, "--metrics", "metrics.jsonl", "--checkpoints", "ckpt",
                                hparams={"diary": "diary"})
        self.assert_ok(result)
        training, validation = self.metrics("training"), self.metrics("validation")
        self.assertEqual(sorted(training), list(range(16)))
        self.assertEqual(sorted(validation), [7, 15])
        self.assertLess(training[15]["loss"], training[0]["loss"])
        self.assertEqual((training[3]["batch"], training[3]["dtype"]), (3, "fp32"))
        # Two micro batches on two ranks with two samples each; a validation in between leaves nothing behind.
        for batch in (0, 8):
            self.assertIn(training[batch]["accuracy"] * 8, range(9))
        self.assertEqual(validation[15]["slots"], 2)
        self.assertEqual(set(validation[15]), {"loss", "accuracy", "largest", "slots"})
        for rank in (0, 1):
            diary = [line for line in self.diary(rank) if not line.startswith(("step ", "stepped ", "reported "))]
            validation = ["validation", "evaluating", "evaluated 3", "validated"]
            self.assertEqual([re.sub(r" \{.*", "", line) for line in diary],
                             ["startup 0 steps 0", "training", "epoch 0", "epoch ended 0", *validation,
                              "epoch 1", "epoch ended 1", *validation, "saving", "written", "saved", "shutdown"])
            self.assertIn("stepped 15 loss", self.diary(rank))

    def test_a_workload_ends_with_its_means_and_its_steps(self):
        self.assert_ok(self.run_trial("--steps", 5, "--report-every", 2, "--metrics", "metrics.jsonl",
                                      hparams={"diary": "diary"}))
        reported = self.metrics("training")
        for rank in (0, 1):
            lines = [line for line in self.diary(rank) if line.startswith("reported ")]
            workloads = [json.loads(line[len("reported "):]) for line in lines]
            self.assertEqual([len(workload["steps"]) for workload in workloads], [2, 2, 1])
            self.assertEqual([workload["means"] for workload in workloads], [reported[batch] for batch in (1, 3, 4)])
            self.assertEqual([step["batch"] for workload in workloads for step in workload["steps"]], [0, 1, 2, 3, 4])

    def test_a_workload_ends_where_one_of_its_intervals_does(self):
        self.write_config({**CONFIG, "train_batch_size": 4})
        self.assert_ok(self.run_trial("--steps", 11, "--report-every", 5, "--validate-every", 3, "--checkpoint-every",
                                      4, "--checkpoints", "ckpt", "--metrics", "metrics.jsonl", ranks=1))
        self.assertEqual(sorted(self.metrics("training")), [2, 3, 4, 5, 7, 8, 9, 10])
        self.assertEqual(sorted(self.metrics("validation")), [2, 5, 8, 10])

    def test_a_bare_tensor_is_the_loss_and_arrays_are_averaged(self):
        hparams = {"bare": True, "per_class": True, "workers": 2}
        self.assert_ok(self.run_trial("--steps", 2, "--metrics", "metrics.jsonl", hparams=hparams))
        self.assertEqual(set(self.metrics("training")[1]), {"loss", "accuracy"})
        per_class = self.metrics("validation")[1]["per_class"]
        self.assertEqual(len(per_class), 2)
        self.assertTrue(all(value > 0 for value in per_class))

    def test_an_interval_of_recomputed_layers_is_warned_of(self):
        self.write_config({**CONFIG, "pipeline": {"activation_checkpoint_interval": 2}})
        result = self.run_trial("--steps", 1)
        self.assert_ok(result)
        self.assertRegex(result.stderr, r"\A.*warning: pipeline.activation_checkpoint_interval has no effect: .*\n\Z")

    def test_workers_change_no_loss(self):
        losses = []
        for workers in (0, 2):
            self.assert_ok(self.run_trial("--steps", 6, "--metrics", "metrics.jsonl", hparams={"workers": workers}))
            losses.append([metrics["loss"] for metrics in self.metrics("training").values()])
        self.assertEqual(*losses)

    def test_the_experiment_may_be_yaml(self):
        (self.dir / "experiment.yaml").write_text("name: points\nhyperparameters:\n  width: {type: const, val: 8}\n"
                                                  "  report: report.json\n")
        result = self.run_trial("--steps", 1, file="experiment.yaml")
        self.assert_ok(result)
        report = json.loads((self.dir / "report.json").read_text())
        self.assertEqual((report["experiment_id"], report["width"]), ("points", 8))

    def test_one_rank_with_more_accumulation_sees_the_same_data(self):
        quiet = {"quiet": True}
        self.assert_ok(self.run_trial("--steps", 1, "--metrics", "two", hparams=quiet))
        self.write_config({**CONFIG, "gradient_accumulation_steps": 4})
        self.assert_ok(self.run_trial("--steps", 1, "--metrics", "one", ranks=1, hparams=quiet))
        # Dropout differs between ranks; the share of the samples that are right before any update hardly does.
        self.assertFalse((self.dir / "tensorboard").exists())
        of_one, of_two = (self.metrics("training", name)[0]["loss"] for name in ("one", "two"))
        self.assertAlmostEqual(of_two, of_one, delta=0.2)

    def test_a_trial_may_train_whole_steps_and_bring_its_own_loader(self):
        for hparams in ({"own_loop": True}, {"own_loader": True}, {"two_engines": True}):
            with self.subTest(hparams):
                result = self.run_trial("--steps", 3, "--metrics", "metrics.jsonl", "--report-every", 2,
                                        ranks=2, hparams=hparams)
                self.assert_ok(result)
                self.assertEqual(sorted(self.metrics("training")), [1, 2])

    def test_only_ranks_that_report_count(self):
        self.assert_ok(self.run_trial("--steps", 1, "--metrics", "metrics.jsonl", hparams={"report_on_rank_0": True}))
        self.assertEqual(self.metrics("validation")[0]["slots"], 1)

    def test_the_context_tells_what_the_trial_asks(self):
        (self.dir / "tensorboard").mkdir()
        hparams = {"width": {"type": "const", "val": 4}, "report": "report.json", "global_batch_size": 8,
                   "overwrite_deepspeed_args": {"gradient_clipping": 1.0}}
        experiment = {"name": "study", "data": {"path": "here"}, "resources": {"slots_per_trial": 2}}
        self.assert_ok(self.run_trial("--steps", 1, hparams=hparams, experiment=experiment))
        report = json.loads((self.dir / "report.json").read_text())
        self.assertEqual(report["experiment"]["name"], "study")
        self.assertEqual(report["config"], {**CONFIG, "gradient_clipping": 1.0})
        expected = {"data": {"path": "here"}, "width": 4, "experiment_id": "study", "trial_id": "local", "stop": False,
                    "tensorboard": "tensorboard", "logging": True, "tuning": False, "batch": 0, "epoch_end": False,
                    "models": 1, "micro_batch": 2, "micro_batches": 2, "pipeline": False,
                    "unit": [0, 2], "device": "cpu", "overwritten": {"a": 1, "b": 2}}
        self.assertEqual({key: report[key] for key in expected}, expected)

    def test_the_hyperparameter_may_name_the_configuration(self):
        arguments = self.arguments_of("--steps", 1, hparams={"deepspeed_config": "ds_config.json"})
        at = arguments.index("--deepspeed_config")
        self.assert_ok(run_dsat_trial(*arguments[:at], *arguments[at + 2:], cwd=self.dir))


def records(path):
    """TFRecords of an event file, their checksums compared."""
    def masked(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    data, at = path.read_bytes(), 0
    while at < len(data):
        size, check = struct.unpack_from("<QI", data, at)
        body = data[at + 12:at + 12 + size]
        assert check == masked(data[at:at + 8]) and struct.unpack_from("<I", data, at + 12 + size)[0] == masked(body)
        yield body
        at += 16 + size


def fields(message):
    """A protocol buffer's fields as (number, value); length-delimited ones as bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[at:at + size]
        at += size


class TensorBoard(TrialTest):
    def test_event_files_hold_scalars_and_images_and_traces_lie_beside_them(self):
        self.write_config({**CONFIG, "train_batch_size": 4})
        result = self.run_trial("--steps", 4, "--tensorboard", "board",
                                ranks=1, hparams={"profile": True, "report": "report.json"})
        self.assert_ok(result)
        files = sorted((self.dir / "board").glob("events.out.tfevents.*"))
        self.assertEqual(len(files), 1)
        values = {}
        for record in records(files[0]):
            event = dict(fields(record))
            for number, value in fields(event.get(5, b"")):
                content = dict(fields(value))
                values[content[1].decode(), event.get(2, 0)] = content
        self.assertTrue({("training/loss", step) for step in (1, 2, 3, 4)} <= set(values))
        self.assertIn(("validation/accuracy", 4), values)
        loss = struct.unpack("<f", values["training/loss", 1][2])[0]
        self.assertTrue(0 < loss < 5)
        image = dict(fields(values["noise", 1][4]))
        self.assertEqual((image[1], image[2], image[3]), (4, 5, 3))
        size, = struct.unpack(">I", image[4][33:37])
        self.assertEqual((image[4][37:41], len(zlib.decompress(image[4][41:41 + size]))), (b"IDAT", 4 * (1 + 3 * 5)))
        trace = json.loads((self.dir / "board/rank0.step2.trace.json").read_text())
        self.assertIn("aten::addmm", {event["name"] for event in trace["traceEvents"]})


class BadInput(TrialTest):
    def assert_refused(self, result, *texts, status=None):
        self.assertNotEqual(result.returncode, 0, result.stdout)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)

    def test_libraries_that_hold_no_trial(self):
        (self.dir / "text.so").write_text("no library")
        cases = {"no_entry": ["has no dsat_trial_entry", "DSAT_TRIAL"],
                 "old_trial": ["dsat 0.0.1 and LibTorch 1.12.0", "build it again"],
                 "no/such.so": ["no/such.so: no such file"], "./text.so": ["text.so", "cannot be loaded"]}
        for library, texts in cases.items():
            with self.subTest(library):
                self.assert_refused(self.run_trial(library=library), *texts, status=2)

    def test_trials_that_go_wrong_are_named_in_one_line(self):
        cases = {"constructor": ["constructor of PointsTrial", "the data set has moved"],
                 "wrapped twice": ["wrapped already"], "no engine": ["wrap_model_engine"],
                 "loader": ["PlainLoader", "disable_dataset_reproducibility_checks"],
                 "no loader": ["build_training_data_loader gave no loader"],
                 "batch size": ["micro batches of 3", "train_micro_batch_size_per_gpu is 2", "train_batch_size 4"],
                 "mpu": ["data-parallel rank 0 of 99"], "nan": ["'loss' of train_batch", "NaN"],
                 "tensor": ["'logits' of train_batch", "[100, 100]"], "twice": ["'accuracy' is reported twice"],
                 "idle": ["trained nothing"], "throws": ["the disk is full"],
                 "mpu twice": ["set_mpu: called twice", "call it once"],
                 "early size": ["train_micro_batch_size_per_gpu: is the engine's", "wrap_model_engine()"],
                 "early epoch": ["current_train_epoch", "ask later"],
                 "kernels": ["set_profiler", "ProfilerActivity::cuda", "nsys profile"],
                 "keys": ["{loss} for batch 0", "{loss, more} for batch 2",
                          "give the same ones"]}
        self.write_config({**CONFIG, "train_batch_size": 4})
        for fault, texts in cases.items():
            with self.subTest(fault):
                status = 1 if fault == "nan" else None  # a training that fails is no wrong usage
                result = self.run_trial("--steps", 4, ranks=1, hparams={"fault": fault})
                self.assert_refused(result, *texts, status=status)

    def test_data_that_are_too_few_for_a_step_are_refused(self):
        self.write_config({**CONFIG, "train_batch_size": 8, "gradient_accumulation_steps": 4})
        self.assert_refused(self.run_trial("--steps", 4, ranks=1, hparams={"points": 3}),
                            "2 micro batches", "takes 4", "use more data")

    def test_a_step_that_leaves_micro_batches_out_is_refused(self):
        self.assert_refused(self.run_trial("--steps", 4, hparams={"fault": "few", "own_loop": True}),
                            "trained 1 of the 2", "step 0", "gradient_accumulation_steps",
                            "disable_auto_grad_accumulation()")

    def test_calls_that_leave_micro_batches_out_or_double_them_are_refused(self):
        self.assert_refused(self.run_trial("--steps", 4, hparams={"fault": "every other call", "two_engines": True}),
                            "trained 1 of the 2", "step 0 with engine 1",
                            "call disable_auto_grad_accumulation()")
        self.assert_refused(self.run_trial("--steps", 4, hparams={"fault": "double"}),
                            "trained 4 micro batches", "2 of step 0")
        # A loop of the trial's own may do so: every update is whole.
        self.assert_ok(self.run_trial("--steps", 4, hparams={"fault": "double", "own_loop": True}))

    def test_ranks_that_evaluate_other_metrics_are_named(self):
        self.assert_refused(self.run_trial("--steps", 1, hparams={"fault": "keys of a rank"}),
                            "{loss} for rank 0", "{other} for rank 1")

    def test_callbacks_see_the_end_after_an_exception_too(self):
        self.write_config({**CONFIG, "train_batch_size": 4})
        result = self.run_trial("--steps", 4, ranks=1, hparams={"fault": "throws", "diary": "diary"})
        self.assert_refused(result, "the disk is full")
        self.assertEqual(self.diary()[-2:], ["step 2", "shutdown"])

    def test_experiments_that_cannot_be_read(self):
        cases = {"experiment.yaml": ("a:\n\tb: 1\n", "experiment.yaml:2:1: a tab"),
                 "list.yml": ("[1, 2]\n", "list.yml: must hold"),
                 "list.json": ("[1, 2]\n", "list.json: holds array; an object"),
                 "yaml.json": ("name: x\n", "yaml.json:1:1"), "gone.yaml": (None, "gone.yaml: no such file")}
        for name, (text, complaint) in cases.items():
            with self.subTest(name):
                if text is not None:
                    (self.dir / name).write_text(text)
                self.assert_refused(self.run_trial("--steps", 1, file=name, timeout=60), complaint, status=2)

    def test_experiments_that_contradict_the_engine(self):
        self.assert_refused(self.run_trial(hparams={"global_batch_size": 16}),
                            "global_batch_size is 16", "train_batch_size is 8")
        self.assert_refused(self.run_trial(experiment={"resources": {"slots_per_trial": 4}}),
                            "slots_per_trial is 4", "world size is 2")

    def test_wrong_options(self):
        cases = {("--steps", 0): "--steps 0", ("--steps", 1, "--epochs", 1): "--epochs", ("--bogus",): "--bogus",
                 ("--checkpoint-every", 3): "--checkpoints", ("--metrics",): "--metrics needs a value"}
        for options, text in cases.items():
            with self.subTest(options):
                self.assert_refused(self.run_trial(*options), text, status=2)


class Tuning(TrialTest):
    def test_the_host_tunes_a_trial(self):
        own = {key: CONFIG[key] for key in ("optimizer", "zero_optimization")}
        self.write_config(own | {"train_micro_batch_size_per_gpu": 1})
        command = self.command_of(hparams={"report": "report.json"})
        result = self.run_host(["--searcher", BUILD / "plugins/libasha.so", "--max-trials", 4, "--slots", 2,
                                "--slots-per-trial", 2, "--output-dir", "out", "-r", 1], command)
        self.assert_ok(result)
        study = self.show(self.dir / "out")
        self.assertEqual({trial["outcome"] for trial in study["trials"] if trial["attempt"] > 0}, {"completed"})
        self.assertTrue(json.loads((self.dir / "out/best_ds_metrics.json").read_text())["FLOPS_per_gpu"] > 0)
        self.assertTrue(json.loads((self.dir / "report.json").read_text())["tuning"])
        self.assertFalse(list(self.dir.rglob("events.out.tfevents.*.rank1")))


class Examples(TrialTest):
    """The image model on the Trial API and as a bare loop: one training, written twice."""

    def setUp(self):
        super().setUp()
        self.example = PROJECT / "examples/trials/trial_api"
        experiment = json.loads((self.example / "experiment.json").read_text())
        experiment["data"].update(training_images=32, validation_images=8, image=16)
        (self.dir / "experiment.json").write_text(json.dumps(experiment))
        self.write_config((self.example / "ds_config.json").read_text())
        self.trial = [BUILD / "dsat-trial", "--trial", TRIALS / "libimage_trial.so", "--experiment", "experiment.json"]
        self.loop = [TRIALS / "image_loop", "experiment.json", "3"]
        self.common = ["--ranks", "2", "--deepspeed_config", "ds_config.json"]

    def losses(self, command):
        result = subprocess.run([str(word) for word in command + self.common],
                                cwd=self.dir, capture_output=True, text=True, timeout=240)
        self.assert_ok(result)
        return re.findall(r"^training (\d+)  loss (\S+)", result.stdout, re.M)

    def test_both_train_alike_from_configurations_alike(self):
        for name in ("ds_config.json", "experiment.json"):
            folders = (PROJECT / "examples/trials/bare_loop", self.example)
            there, here = ((folder / name).read_text() for folder in folders)
            self.assertEqual(there.replace("bare_loop", "trial_api"), here)
        of_trial, of_loop = self.losses([*self.trial, "--steps", 3]), self.losses(self.loop)
        self.assertEqual((len(of_trial), len(of_loop)), (3, 3))
        for (_, one), (_, other) in zip(of_trial, of_loop):
            self.assertAlmostEqual(float(one), float(other), delta=1e-5)

    def test_the_bare_loop_goes_on_from_its_checkpoint(self):
        whole = self.losses(self.loop)
        self.losses([*self.loop[:2], "2", "checkpoints"])
        self.assertEqual(self.losses([*self.loop, "checkpoints"]), whole[2:])

    def test_the_host_tunes_the_example(self):
        for command in (self.trial, [*self.loop[:2], "100"]):
            with self.subTest(command[0].name):
                output = self.dir / command[0].name
                result = self.run_host(["--searcher", BUILD / "plugins/libasha.so", "--max-trials", 3, "--slots", 2,
                                        "--slots-per-trial", 2, "--output-dir", output],
                                       [str(word) for word in command + self.common])
                self.assert_ok(result)
                self.assertTrue((output / "best_ds_config.json").exists())


class DocumentedTrial(TrialTest):
    """The trial in docs/trial-api.md, built and run by the lines there."""

    def test_the_example_compiles_and_trains_as_written(self):
        page = (PROJECT / "docs/trial-api.md").read_text().replace("\\\n", "")  # a command is one line
        source = re.search(r"`my_trial.cc`:\n\n```cpp\n(.*?)```", page, re.S).group(1)
        self.assertLessEqual(source.count("\n"), 60)
        (self.dir / "my_trial.cc").write_text(source)
        build, train = (re.search(rf"^    ({start} .*)$", page, re.M).group(1) for start in (r"g\+\+", "dsat-trial"))
        includes = f"-I {PROJECT}/trainer/include -I {PROJECT}/sdk/include"
        build = build.replace("-I ~/.local/include", includes).replace("-O2", "-O0")
        compiled = subprocess.run(shlex.split(build), cwd=self.dir, capture_output=True, text=True, timeout=600)
        self.assert_ok(compiled)
        environment = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}
        trained = subprocess.run(shlex.split(train),
                                 cwd=self.dir, capture_output=True, text=True, timeout=240, env=environment)
        self.assert_ok(trained)
        self.assertIn("training 100 ", trained.stdout)
        accuracy = float(re.findall(r"^validation 100 .*accuracy (\S+)", trained.stdout, re.M)[0])
        self.assertGreater(accuracy, 0.8)


if __name__ == "__main__":
    unittest.main()
