"""Scripts without DeepSpeed, tuned by their flags, their environment and a line that they print (--metric-pattern)."""
import json
import os
import re
import subprocess
import sys

from support import CONFIG, FIXTURES, HOST, HostTest

TRAINERS = FIXTURES / "trainers/trainers.py"


class PrintedMetric(HostTest):
    def setUp(self):
        super().setUp()
        (self.dir / "ds_config.json").unlink()
        (self.dir / "bin").mkdir()
        for name in ("torchrun",):
            self.program("bin/" + name, name).chmod(0o755)
        self.environment = {**os.environ, "PATH": "%s:%s" % (self.dir / "bin", os.environ["PATH"])}

    def program(self, path, name):
        file = self.dir / path
        file.write_text("#!%s\nimport sys\nsys.path.insert(0, %r)\nimport trainers\n"
                        "sys.exit(trainers.%s(sys.argv[1:]))\n" % (sys.executable, str(TRAINERS.parent), name))
        return file

    def run_study(self, command, space, *options):
        (self.dir / "space.json").write_text(json.dumps(space))
        defaults = {"--max-trials": 14, "--searcher": "grid", "--slots": 2}
        given = [word for name, value in defaults.items() if name not in options for word in (name, value)]
        arguments = [HOST, "--output-dir", "out", "--space", "space.json", *given, *options, "--", *command.split()]
        return subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True, timeout=240,
                              env=self.environment)

    def tune(self, command, space, *options):
        """Returns the best configuration's axes; its command holds them."""
        self.assert_ok(self.run_study(command, space, *options))
        best = json.loads((self.dir / "out/best_ds_config.json").read_text())
        self.assertNotIn("{", (self.dir / "out/best_cmd.txt").read_text())
        study = self.show("out")["study"]
        self.assertEqual(study["metric"], "printed")
        return {key: best[key] for key in space}

    def trials(self):
        return [trial for trial in self.show("out")["trials"] if trial["attempt"] > 0]

    def refuse(self, *options, status=2, command="python3 train.py"):
        self.program("train.py", "ddp")
        result = self.run_study(command, {"bs": [1, 2]}, *options)
        self.assert_ok(result, status)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        return result.stderr

    def test_torchrun_with_ddp(self):
        self.program("train.py", "ddp")
        best = self.tune("env OMP_NUM_THREADS={threads} torchrun --nproc_per_node 2 train.py --batch-size {bs} "
                         "{torch_compile} --workers {workers}",
                         {"bs": [8, 32], "torch_compile": ["", "--compile"], "workers": {"range": [1, 2]},
                          "threads": [1, 2]}, "--max-trials", 24, "--metric-pattern", "([0-9.]+) samples/s")
        self.assertEqual(best, {"bs": 8, "torch_compile": "--compile", "workers": 2, "threads": 2})
        trials = self.trials()
        self.assertEqual({trial["kind"] for trial in trials} & {"profile"}, set())
        self.assertEqual({trial["outcome"] for trial in trials if trial["config"]["bs"] == 32}, {"out_of_memory"})
        measured = [trial for trial in trials if trial["outcome"] == "completed"]
        own = next(trial for trial in measured if trial["kind"] == "baseline")
        self.assertAlmostEqual(own["metrics"]["printed"], 80)
        self.assertEqual([warning for trial in measured for warning in trial.get("warnings") or []], [])
        summary = (self.dir / "out/summary.txt").read_text()
        self.assertIn("x your own configuration", summary)

    def test_torchtitan(self):
        self.program("titan.py", "titan")
        (self.dir / "llama.toml").write_text("[training]\n")
        best = self.tune("env PYTORCH_CUDA_ALLOC_CONF={alloc} torchrun --nproc_per_node=2 --rdzv_backend c10d "
                         "--rdzv_endpoint=localhost:0 --role rank --tee 3 -m titan --job.config_file llama.toml "
                         "--training.local_batch_size {bs} --activation_checkpoint.mode={ac} {torch_compile}",
                         {"bs": [2, 4], "ac": ["selective", "none"],
                          "alloc": ["", "expandable_segments:True"], "torch_compile": ["", "--compile.enable"]},
                         "--max-trials", 24, "--finals", 0, "--metric-pattern", r"tps: ([\d,]+)", "--loss-pattern",
                         r"loss: +([\d.]+)", "--no-twin")
        self.assertEqual(best, {"bs": 4, "ac": "selective", "alloc": "expandable_segments:True",
                                "torch_compile": "--compile.enable"})

    def test_lightning(self):
        self.program("train.py", "lightning")
        best = self.tune("python3 train.py fit --trainer.precision {precision} --trainer.strategy={strategy} "
                         "--trainer.devices 2 --data.num_workers {workers}",
                         {"precision": ["32-true", "bf16-mixed"], "strategy": ["ddp", "fsdp"],
                          "workers": {"range": [1, 4], "log": True}},
                         "--max-trials", 20, "--metric-pattern", r"([\d.]+)it/s")
        self.assertEqual(best, {"precision": "bf16-mixed", "strategy": "fsdp", "workers": 4})

    def test_megatron(self):
        """Its own micro batch is in its flag, which follows; the global batch stays."""
        self.program("pretrain_gpt.py", "megatron")
        self.tune("env CUDA_DEVICE_MAX_CONNECTIONS={connections} torchrun --nproc_per_node 2 pretrain_gpt.py "
                  "--micro-batch-size 1 --global-batch-size 16 --use-distributed-optimizer {overlap}",
                  {"overlap": ["", "--overlap-grad-reduce"], "connections": ["", 1]}, "--global-batch", 16,
                  "--max-trials", 24, "--metric-pattern", r"elapsed time per iteration \(ms\): ([\d.]+)",
                  "--smaller-is-better")
        best = min((trial for trial in self.trials() if trial["outcome"] == "completed"),
                   key=lambda trial: trial["metrics"]["printed"])["config"]
        self.assertEqual([best["overlap"], best["connections"]], ["--overlap-grad-reduce", 1])
        self.assertEqual(best["train_micro_batch_size_per_gpu"], 8)
        self.assertIn("--micro-batch-size 8 --global-batch-size 16", (self.dir / "out/best_cmd.txt").read_text())
        self.assertEqual({trial["outcome"] for trial in self.trials()} & {"failed"}, set())

    def test_guided_takes_larger_micro_batches_for_a_shorter_step(self):
        self.program("pretrain_gpt.py", "megatron")
        self.tune("torchrun --nproc_per_node 2 pretrain_gpt.py --micro-batch-size 1 --global-batch-size 16 "
                  "--use-distributed-optimizer {overlap}", {"overlap": ["", "--overlap-grad-reduce"]},
                  "--searcher", "guided", "--global-batch", 16, "--smaller-is-better", "--metric-pattern",
                  r"elapsed time per iteration \(ms\): ([\d.]+)")
        self.assertIn("--micro-batch-size 8", (self.dir / "out/best_cmd.txt").read_text())

    def test_tokens_and_the_share_of_the_peak(self):
        self.write_config(CONFIG)
        options = ["--output-dir", "out", "--max-trials", 6, "--finals", 0, "--searcher", "random", "--slots", 2,
                   "--metric", "throughput", "--tokens-per-sample", 1024, "--device", "A100"]
        self.assert_ok(self.run_host(options))
        tokens = 1024 * json.loads((self.dir / "out/best_ds_metrics.json").read_text())["throughput"]
        params = self.show("out")["profile"]["num_params"]
        line = re.search(r"tokens: ([\d.]+)( [kMGT])? tokens/s, MFU ([\d.]+) % \(6 x .* of 2 x A100 at 312 TFLOP/s\)",
                         (self.dir / "out/summary.txt").read_text())
        self.assertIsNotNone(line)
        scale = {None: 1, " k": 1e3, " M": 1e6, " G": 1e9, " T": 1e12}[line[2]]
        self.assertAlmostEqual(float(line[1]) * scale / tokens, 1, delta=0.01)
        self.assertAlmostEqual(float(line[3]), 100 * 6 * params * tokens / (2 * 312e12), delta=0.06)
        for given, text in ((["--device", "A100"], "needs --tokens-per-sample"),
                            (["--device", "A101", "--tokens-per-sample", 8], "known are V100-SXM, T4")):
            result = self.run_host(given)
            self.assert_ok(result, 2)
            self.assertIn(text, result.stderr)

    def test_patterns_that_fit_nothing(self):
        for pattern, line in (("samples/s", "has no group"), ("(a)(b)", "has several groups"),
                              ("([", "--metric-pattern")):
            self.assertIn(line, self.refuse("--metric-pattern", pattern))
        self.assertIn("names no DeepSpeed configuration", self.refuse())
        self.assertIn("is not given", self.refuse("--smaller-is-better"))
        self.assertIn("keep one", self.refuse("--metric-pattern", "(.)", "--metric", "throughput"))
        self.assertIn("bs is nowhere in the command", self.refuse("--metric-pattern", "(.)"))
        self.assertFalse((self.dir / "out").exists())

    def test_lines_without_a_number(self):
        """The study ends after a few trials, with the reason of each."""
        command = "env RANK=0 python3 train.py --batch-size {bs}"
        (self.dir / "train.py").write_text("for step in range(9): print('speed: fast')\n")
        for pattern, reason in (("speed: (.*)", "fits 'fast', which is no number"),
                                ("tokens/s: (.*)", "no line that the script printed fits --metric-pattern")):
            result = self.run_study(command, {"bs": [1, 2]}, "--metric-pattern", pattern)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(reason, result.stderr + result.stdout)
            (self.dir / "out").rename(self.dir / ("out" + reason[:3].strip()))
        (self.dir / "train.py").write_text("import signal\nfor step in range(9): print('speed: fast', flush=True)\n"
                                           "signal.pause()\n")
        result = self.run_study(command, {"bs": [1, 2]}, "--metric-pattern", "speed: (.*)")
        self.assertIn("fits 'fast', which is no number", result.stderr + result.stdout)
        (self.dir / "out").rename(self.dir / "out_endless")
        (self.dir / "train.py").write_text("for step in range(4): print('speed: 0')\n")
        result = self.run_study(command, {"bs": [1, 2]}, "--metric-pattern", "speed: (.*)")
        self.assertIn("4 printed lines fit --metric-pattern, and 6 are needed", result.stderr + result.stdout)
