"""The table of docs/launchers.md: what users of each project type, tuned with no edit, or the line that says why not.

The programs are the stand-ins of tests/fixtures/frameworks.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from support import CONFIG, FIXTURES, HOST, PROJECT, HostTest

FRAMEWORKS = FIXTURES / "frameworks"
AUTO = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}, "gradient_clipping": "auto",
        "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "train_batch_size": "auto"}
ZERO2 = (FRAMEWORKS / "trl/accelerate_configs/zero2.yaml").read_text()
TRAIN = """# the user's own
model_name_or_path: some/model
output_dir: out
per_device_train_batch_size: 4  # a guess
gradient_accumulation_steps: 2
learning_rate: 1.0e-4
bf16: true
"""
QUICK = ["--max-trials", 5, "--finals", 0, "--searcher", "random", "-z", 2]


class Frameworks(HostTest):
    def setUp(self):
        super().setUp()
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        for name in ("accelerate", "trl", "axolotl", "llamafactory-cli", "swift", "torchrun"):
            (self.bin / name).write_text("#!%s -S\nimport sys\nsys.path[:0] = [%r, %r]\nimport frameworks\n"
                                         "frameworks.main(%r, sys.argv[1:])\n" % (sys.executable, str(FRAMEWORKS),
                                                                                  str(FIXTURES), name))
            (self.bin / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": "%s:%s" % (self.bin, os.environ["PATH"]), "HOME": str(self.dir),
                            "PYTHONPATH": "%s:%s" % (FRAMEWORKS, FIXTURES)}
        for name in ("NPROC_PER_NODE", "MASTER_PORT", "FORCE_TORCHRUN", "HF_HOME", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)
        self.write("ds.json", json.dumps(AUTO))
        self.write("train.py", (FRAMEWORKS / "hf_script.py").read_text().replace(
            "os.path.dirname(os.path.abspath(__file__))", repr(str(FRAMEWORKS)), 1).replace(
            "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))", repr(str(FIXTURES))))

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_command(self, command, *options):
        arguments = [HOST, "--output-dir", "out-dsat", *QUICK, *options, "--", *command.split()]
        return subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True, timeout=240,
                              env=self.environment)

    def tune(self, command, *options):
        """All trials have measured what they were asked to; returns the best command."""
        before = {path: path.read_bytes() for path in self.dir.glob("*.*") if path.is_file()}
        self.assert_ok(self.run_command(command, *options))
        trials = [trial for trial in self.show("out-dsat")["trials"] if trial["attempt"] > 0]
        self.assertEqual({t["outcome"] for t in trials} - {"completed", "out_of_memory"}, set(), trials)
        sizes = set()
        for trial in trials:
            folder = self.dir / "out-dsat/trials" / str(trial["id"])
            (ran,) = [json.loads((folder / name).read_text()) for name in ("filled.json", "engine.json", "ds.json")
                      if (folder / name).exists()]
            for key in ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "zero_optimization"):
                asked = trial["config"].get(key)
                if isinstance(asked, dict):
                    self.assertEqual(ran[key]["stage"], asked["stage"])
                elif asked is not None:
                    self.assertEqual(ran[key], asked, key)
            sizes.add(trial["config"]["train_micro_batch_size_per_gpu"])
        self.assertGreater(len(sizes), 1)
        for path, content in before.items():
            self.assertEqual(path.read_bytes(), content, path)
        ports = [port for file in self.dir.glob("out-dsat/trials/*/ports") for port in file.read_text().split()]
        self.assertEqual(len(set(ports)), len(ports), "two trials had a port")
        return (self.dir / "out-dsat/best_cmd.txt").read_text()

    def refuse(self, command, *options):
        result = self.run_command(command, *options)
        self.assert_ok(result, 2)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertFalse((self.dir / "out-dsat").exists())
        return result.stderr

    def best_train(self):
        return (self.dir / "out-dsat/best_train.yaml").read_text()

    def best(self):
        return json.loads((self.dir / "out-dsat/best_ds_config.json").read_text())

    # accelerate's YAML and options

    def test_accelerates_fields(self):
        self.write("zero2.yaml", ZERO2)
        best = self.tune("accelerate launch --config_file zero2.yaml train.py --output_dir out")
        self.assertIn("--mixed_precision bf16", best)
        self.assertIn("--per_device_train_batch_size %d" % self.best()["train_micro_batch_size_per_gpu"], best)
        settings = (self.dir / "out-dsat/best_accelerate_config.yaml").read_text()
        self.assertIn("downcast_bf16: 'no'\n", settings)
        self.assertIn("  deepspeed_multinode_launcher: standard\n", settings)
        for refused in ("zero_stage", "offload", "zero3_init_flag", "mixed_precision"):
            self.assertNotIn(refused, settings)
        self.assertEqual(self.best()["bf16"], {"enabled": True})
        self.assertEqual(self.best()["gradient_clipping"], "auto")

    def test_accelerates_options(self):
        best = self.tune("accelerate launch --use_deepspeed --zero_stage 2 --gradient_accumulation_steps=2 "
                         "--num_processes 2 train.py --output_dir out --gradient_accumulation_steps 2")
        self.assertIn("--deepspeed_config_file %s" % (self.dir / "out-dsat/best_ds_config.json"), best)
        self.assertNotIn("--zero_stage", best)
        self.assertEqual(self.best()["gradient_accumulation_steps"], 2)

    def test_accelerates_file(self):
        self.write("acc.yaml", "distributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: bf16\n"
                               "deepspeed_config:\n  deepspeed_config_file: ds.json\n  zero3_init_flag: true\n")
        best = self.tune("accelerate launch --config_file acc.yaml train.py --output_dir out")
        self.assertIn("--mixed_precision bf16", best)
        self.assertIn("zero3_init_flag: true", (self.dir / "out-dsat/best_accelerate_config.yaml").read_text())

    def test_settings_of_another_kind_are_named_before_a_trial(self):
        for kind in ("FSDP", "MULTI_GPU", "MEGATRON_LM", "NO"):
            self.write("acc.yaml", "distributed_type: %s\nnum_processes: 2\n" % kind)
            printed = self.refuse("accelerate launch --config_file acc.yaml train.py --output_dir out")
            self.assertIn("acc.yaml:1:1: distributed_type %s: accelerate starts no DeepSpeed there" % kind, printed)
        # The line's advice, to the letter.
        self.tune("accelerate launch --config_file acc.yaml --use_deepspeed --zero_stage 2 train.py --output_dir out")

    # A training YAML

    def test_trl_below_accelerate(self):
        """alignment-handbook: accelerate's fields, and the training's arguments in a YAML."""
        self.write("zero3.yaml", ZERO2.replace("zero_stage: 2", "zero_stage: 3"))
        self.write("config_full.yaml", TRAIN)
        best = self.tune("accelerate launch --config_file zero3.yaml train.py --config config_full.yaml")
        self.assertIn("--config %s" % (self.dir / "out-dsat/best_train.yaml"), best)
        self.assertIn("# the user's own\n", self.best_train())
        self.assertIn("per_device_train_batch_size: %d\n" % self.best()["train_micro_batch_size_per_gpu"],
                      self.best_train())
        self.assertIn("learning_rate: 1.0e-4\nbf16: true\n", self.best_train())

    def test_trls_own_program(self):
        self.write("sft.yaml", TRAIN)
        best = self.tune("trl sft --config sft.yaml --accelerate_config zero2 --num_processes 2")
        self.assertIn("--config_file %s" % (self.dir / "out-dsat/best_accelerate_config.yaml"), best)
        self.assertNotIn("--accelerate_config", best)

    def test_trls_own_program_without_a_file(self):
        best = self.tune("trl sft --output_dir out --accelerate_config zero2")
        self.assertIn("--per_device_train_batch_size %d" % self.best()["train_micro_batch_size_per_gpu"], best)

    def test_trls_file_may_name_accelerates(self):
        self.write("sft.yaml", TRAIN + "accelerate_config: zero2\nnum_processes: 2\n")
        self.tune("trl sft --config sft.yaml")
        self.assertEqual(self.show("out-dsat")["study"]["slots_per_trial"], 2)

    def test_llama_factory(self):
        self.write("full_sft.yaml", TRAIN + "deepspeed: ds.json\n")
        best = self.tune("llamafactory-cli train full_sft.yaml")
        self.assertIn("env FORCE_TORCHRUN=1 llamafactory-cli train %s" % (self.dir / "out-dsat/best_train.yaml"), best)
        self.assertIn('deepspeed: "%s"' % (self.dir / "out-dsat/best_ds_config.json"), self.best_train())
        self.assertEqual(self.best()["gradient_accumulation_steps"], 2, "the file's stands in for auto")

    def test_llama_factorys_words_go_before_its_file(self):
        self.write("full_sft.yaml", TRAIN + "deepspeed: ds.json\n")
        best = self.tune("env FORCE_TORCHRUN=1 NPROC_PER_NODE=2 llamafactory-cli train full_sft.yaml "
                         "per_device_train_batch_size=1 gradient_accumulation_steps=4 learning_rate=1e-5")
        self.assertIn("gradient_accumulation_steps=4 learning_rate=1e-5", best)
        self.assertIn("per_device_train_batch_size=%d" % self.best()["train_micro_batch_size_per_gpu"], best)
        self.assertEqual(self.show("out-dsat")["study"]["slots_per_trial"], 2)

    def test_the_file_may_hold_the_configuration(self):
        self.write("sft.yaml", TRAIN + "deepspeed:\n  zero_optimization:\n    stage: 2\n    reduce_bucket_size: 5e8\n"
                                       "  train_batch_size: auto\n  bf16:\n    enabled: auto\n")
        self.tune("llamafactory-cli train sft.yaml")
        self.assertEqual(self.best()["bf16"], {"enabled": "auto"})

    def test_axolotl(self):
        self.write("config.yml", "base_model: some/model\nmicro_batch_size: 1\ngradient_accumulation_steps: 2\n"
                                 "deepspeed: ds.json\nval_set_size: 0.05\n")
        best = self.tune("axolotl train config.yml")
        self.assertIn("micro_batch_size: %d\n" % self.best()["train_micro_batch_size_per_gpu"], self.best_train())
        self.assertIn("axolotl train %s" % (self.dir / "out-dsat/best_train.yaml"), best)

    def test_axolotls_launchers(self):
        self.write("config.yml", "micro_batch_size: 1\ngradient_accumulation_steps: 2\ndeepspeed: ds.json\n")
        self.tune("axolotl train config.yml --launcher torchrun -- --nproc_per_node=2")
        self.assertEqual(self.show("out-dsat")["study"]["slots_per_trial"], 2)

    def test_axolotls_module_below_accelerate(self):
        self.write("config.yml", "micro_batch_size: 1\ngradient_accumulation_steps: 2\n")
        best = self.tune("accelerate launch -m axolotl.cli.train config.yml --deepspeed ds.json")
        self.assertIn("--deepspeed %s" % (self.dir / "out-dsat/best_ds_config.json"), best)

    def test_swifts_presets(self):
        best = self.tune("env NPROC_PER_NODE=2 swift sft --deepspeed zero2 --output_dir out")
        self.assertIn("--deepspeed %s" % (self.dir / "out-dsat/best_ds_config.json"), best)
        self.assertIn("--gradient_accumulation_steps 1", best)
        self.assertEqual(self.show("out-dsat")["study"]["slots_per_trial"], 2)

    def test_swifts_yaml(self):
        self.write("sft.yaml", TRAIN + "deepspeed: zero2\n")
        self.tune("env NPROC_PER_NODE=2 swift sft sft.yaml")

    def test_json_of_arguments(self):
        """HfArgumentParser takes one JSON file, which it knows by its ending."""
        self.write("args.json", json.dumps({"output_dir": "out", "per_device_train_batch_size": 4,
                                            "deepspeed": "ds.json", "learning_rate": 1e-4}))
        best = self.tune("torchrun --nproc_per_node 2 train.py args.json")
        self.assertIn(" %s" % (self.dir / "out-dsat/best_train.json"), best)
        written = json.loads((self.dir / "out-dsat/best_train.json").read_text())
        self.assertEqual(written.pop("per_device_train_batch_size"), self.best()["train_micro_batch_size_per_gpu"])
        self.assertEqual(written, {"output_dir": "out", "deepspeed": str(self.dir / "out-dsat/best_ds_config.json"),
                                   "gradient_accumulation_steps": 1, "learning_rate": 1e-4})

    # Words and placeholders

    def test_words_of_omegaconf(self):
        self.write("hydra.py", "import sys\nsys.path[:0] = [%r, %r]\nimport frameworks\n"
                   "words = dict(word.split('=') for word in sys.argv[1:])\n"
                   "config = frameworks.load(words['ds'])\n"
                   "config['train_micro_batch_size_per_gpu'] = int(words['data.batch'])\n"
                   "frameworks.measure(config)\n" % (str(FRAMEWORKS), str(FIXTURES)))
        self.write_config({**CONFIG, "zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 1})
        command = "%s -S hydra.py data.batch=1 ds={ds_config}" % sys.executable
        best = self.tune(command, "--ds-config", "ds_config.json", "--arg-mapping",
                         "train_micro_batch_size_per_gpu=data.batch=")
        self.assertIn("data.batch=%d " % self.best()["train_micro_batch_size_per_gpu"], best)
        self.assertIn("names data.size=, which the command does not have", self.again(
            command, "--ds-config", "ds_config.json", "--arg-mapping", "train_micro_batch_size_per_gpu=data.size="))

    def again(self, command, *options):
        (self.dir / "out-dsat").rename(self.dir / "out-before")
        return self.refuse(command, *options)

    def megatron(self):
        """Its flags go before the configuration: the stage, the micro batch, and how often it accumulates."""
        self.write("pretrain.py", "import sys\nsys.path[:0] = [%r, %r]\nimport frameworks\n"
                   "flags = frameworks.flags_of(sys.argv[1:])\nconfig = frameworks.load(flags['deepspeed_config'])\n"
                   "config['zero_optimization']['stage'] = flags['zero_stage']\n"
                   "config['train_micro_batch_size_per_gpu'] = flags['micro_batch_size']\n"
                   "config['gradient_accumulation_steps'] = flags['global_batch_size'] // flags['micro_batch_size']\n"
                   "frameworks.measure(config)\n" % (str(FRAMEWORKS), str(FIXTURES)))
        self.write_config({**CONFIG, "zero_optimization": {"stage": 2}})

    def test_megatron_deepspeed(self):
        self.megatron()
        best = self.tune("%s -S pretrain.py --deepspeed_config ds_config.json --zero-stage 2 --micro-batch-size 4 "
                         "--global-batch-size 64" % sys.executable)
        self.assertIn("--micro-batch-size %d " % self.best()["train_micro_batch_size_per_gpu"], best)

    def test_placeholders(self):
        self.megatron()
        self.tune("%s -S pretrain.py --deepspeed_config ds_config.json --zero-stage={stage} --micro-batch-size "
                  "{micro_batch} --global-batch-size 64" % sys.executable, "--global-batch", 64)

    def test_switches_variables_and_options_are_axes(self):
        self.environment["PATH"] = "%s/bin:%s" % (FIXTURES, self.environment["PATH"])
        axes = {"alloc": ["", "expandable"], "bind": ["", "--bind_cores_to_rank"], "gc": [None, "--checkpointing"],
                "attention": ["sdpa", "eager"], "workers": {"range": [1, 8], "log": True}}
        self.write("space.json", json.dumps(axes))
        self.write("train.py", "import json, os, sys\nsys.path[:0] = [%r, %r]\nimport frameworks\n"
                   "words = sys.argv[1:]\n"
                   "frameworks.note('words', json.dumps([os.environ['ALLOC']] + words))\n"
                   "frameworks.measure(frameworks.load(words[words.index('--deepspeed_config') + 1]))\n"
                   % (str(FRAMEWORKS), str(FIXTURES)))
        self.write_config({**CONFIG, "zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 1})
        best = self.tune("env ALLOC={alloc} deepspeed {bind} --num_gpus 1 train.py --deepspeed_config ds_config.json "
                         "--attention={attention} {gc} --workers {workers}", "--space", "space.json")
        self.assertNotIn("{", best)
        combinations = set()
        for trial in self.show("out-dsat")["trials"]:
            folder, config = self.dir / "out-dsat/trials" / str(trial["id"]), trial["config"]
            if not (folder / "words").exists():
                continue
            words = json.loads((folder / "words").read_text())
            self.assertEqual(words[0], config["alloc"])
            self.assertEqual(words[-2:], ["--workers", str(config["workers"])])
            self.assertIn("--attention=%s" % config["attention"], words)
            self.assertEqual("--checkpointing" in words, config["gc"] is not None)
            self.assertEqual("--bind_cores_to_rank" in (folder / "cmd.txt").read_text(), config["bind"] != "")
            if trial["kind"] == "baseline":
                self.assertEqual([config[key] for key in axes], ["", "", None, "sdpa", 1])
            combinations.add(tuple(config[key] for key in axes))
        self.assertGreater(len(combinations), 1)

    # Configurations built in Python

    def inject(self, script, command, *options):
        """The script builds its configuration itself, with stage 1."""
        self.environment["PYTHONPATH"] = "%s:%s" % (FIXTURES / "injection", FIXTURES)
        self.write("own.py", "import argparse, deepspeed\nparser = argparse.ArgumentParser()\n"
                   "for name in ('--batch', '--train.micro_batch_size', '--data.batch_size', '--zero_stage',\n"
                   "             '--per_device_train_batch_size', '--gradient_accumulation_steps'):\n"
                   "    parser.add_argument(name, type=int, default=1)\n"
                   "arguments = vars(parser.parse_args())\n" + script)
        best = self.tune(command, "--inject", *options)
        self.assertIn("env PYTHONPATH=%s:" % (self.dir / "out-dsat/probe"), best)
        self.assertIn("DSAT_INJECT=%s" % (self.dir / "out-dsat/best_ds_config.json"), best)
        for file in self.dir.glob("out-dsat/trials/*/engine.json"):
            ran = json.loads(file.read_text())
            self.assertEqual(ran["loaded"], ran["train_micro_batch_size_per_gpu"])
        return best

    def test_deepspeed_chat(self):
        """Its flags are Hugging Face's; the configuration is a dict, from them."""
        self.inject("batch = arguments['per_device_train_batch_size']\n"
                    "config = {'train_batch_size': batch, 'train_micro_batch_size_per_gpu': batch,\n"
                    "          'zero_optimization': {'stage': arguments['zero_stage']},\n"
                    "          'bfloat16': {'enabled': True}}\n"
                    "deepspeed.initialize(model=1, optimizer=2, args=argparse.Namespace(local_rank=0),\n"
                    "                     config=config, dist_init_required=True)[0].train(batch)\n",
                    "%s own.py --per_device_train_batch_size 4 --zero_stage 1" % sys.executable)

    def test_openrlhf(self):
        """Two engines: the actor, and a reference that does not train."""
        self.inject("batch = arguments['train.micro_batch_size']\n"
                    "config = {'zero_optimization': {'stage': 1}, 'train_micro_batch_size_per_gpu': batch}\n"
                    "deepspeed.initialize(model=0, config={'zero_optimization': {'stage': 0}})\n"
                    "deepspeed.initialize(model=1, config=dict(config, optimizer={'type': 'Adam'}))[0].train(batch)\n",
                    "%s own.py --train.micro_batch_size 2" % sys.executable,
                    "--arg-mapping", "train_micro_batch_size_per_gpu=--train.micro_batch_size")

    def test_lightnings_strategy(self):
        self.inject("batch = arguments['data.batch_size']\n"
                    "strategy = {'zero_optimization': {'stage': 1}, 'train_micro_batch_size_per_gpu': batch}\n"
                    "deepspeed.initialize(args=argparse.Namespace(device_rank=0), config=strategy, model=1,\n"
                    "                     model_parameters=[2])[0].train(batch)\n",
                    "%s own.py --data.batch_size 2" % sys.executable,
                    "--arg-mapping", "train_micro_batch_size_per_gpu=--data.batch_size")

    def test_transformers_by_object(self):
        """TrainingArguments(deepspeed={...}): accelerate gives the dict by an older name."""
        self.inject("batch = arguments['batch']\n"
                    "deepspeed.initialize(model=1, optimizer=2, config_params={'zero_optimization': {'stage': 1},\n"
                    "    'train_micro_batch_size_per_gpu': batch})[0].train(batch)\n",
                    "%s own.py --batch 2" % sys.executable,
                    "--arg-mapping", "train_micro_batch_size_per_gpu=--batch")

    def test_a_script_without_a_configuration_is_refused_with_inject_in_the_line(self):
        self.write("own.py", "import deepspeed\n")
        self.assertIn("give --inject", self.refuse("%s own.py" % sys.executable))
        self.assertIn("--no-probe", self.refuse("%s own.py" % sys.executable, "--inject", "--no-probe"))

    def test_what_was_not_injected_is_a_failure_with_its_reason(self):
        self.environment["PYTHONPATH"] = "%s:%s" % (FIXTURES / "injection", FIXTURES)
        self.write("own.py", "import os; os.environ['RANK'] = '0'\nimport deepspeed\n"
                             "deepspeed.initialize(model=1, config={})[0].train(1)\n")
        result = self.run_command("%s own.py" % sys.executable, "--inject")
        self.assert_ok(result, 1)
        self.assertIn("the configuration was not injected: deepspeed.initialize made no engine", result.stdout)

    # Bad input

    def test_bad_files_are_one_line_and_nothing_runs(self):
        cases = {"tabs": ("model: x\n\tdeepspeed: ds.json\n", "a tab indents"),
                 "tag": ("deepspeed: !path ds.json\n", "unknown tag !path"),
                 "two documents": ("deepspeed: ds.json\n---\ndeepspeed: ds.json\n", "a second document"),
                 "keys": ("deepspeed: ds.json\ndeepspeed: other.json\n", "is there twice"),
                 "missing": ("deepspeed: nowhere.json\n", "train.yaml:1:1: deepspeed: nowhere.json: no such file"),
                 "list": ("deepspeed: [ds.json]\n", "train.yaml:1:1: deepspeed is"),
                 "none": ("output_dir: out\nlearning_rate: 1\n", "names no DeepSpeed configuration: add `deepspeed:"),
                 "no preset": ("deepspeed: zero9\n", "neither a file nor a preset of swift, which has zero2, zero3")}
        for name, (text, why) in cases.items():
            with self.subTest(name):
                path = self.write("train.yaml", text)
                self.assertIn(why, self.refuse("swift sft train.yaml" if name == "no preset" else
                                               "llamafactory-cli train train.yaml"))
                self.assertEqual(path.read_text(), text)
        self.assertIn("no file 'nowhere.yaml'", self.refuse("llamafactory-cli train nowhere.yaml"))
        self.assertIn("zero9: neither a file nor a preset", self.refuse("swift sft --deepspeed zero9"))

    def test_anchors_are_read(self):
        self.write("sft.yaml", "x: &n 2\n" + TRAIN.replace("steps: 2", "steps: *n") + "deepspeed: ds.json\n")
        self.tune("llamafactory-cli train sft.yaml")

    def test_for_quick_starts_without_deepspeed_the_line_names_what_to_add(self):
        self.write("zero.json", "{}")
        for command, line, added in (
                ("trl sft --output_dir out", "add --accelerate_config zero2 to it", " --accelerate_config zero2"),
                ("swift sft --output_dir out", "add --deepspeed zero2 to it", " --deepspeed zero2"),
                ("llamafactory-cli train --output_dir out", "add --deepspeed FILE.json to it", " --deepspeed ds.json")):
            with self.subTest(command):
                self.assertIn("names no DeepSpeed configuration: %s," % line, self.refuse(command))
                self.tune(command + added)
                shutil.rmtree(self.dir / "out-dsat")
        self.write("sft.yaml", TRAIN)
        self.write("config.yml", "base_model: some/model\nmicro_batch_size: 1\ngradient_accumulation_steps: 2\n")
        for command in ("llamafactory-cli train sft.yaml", "axolotl train config.yml"):
            with self.subTest(command):
                self.assertIn("or give --ds-config FILE.json ({} in it", self.refuse(command))
                self.tune(command, "--ds-config", "zero.json")
                self.assertIn("deepspeed: \"%s\"" % (self.dir / "out-dsat/best_ds_config.json"), self.best_train())
                shutil.rmtree(self.dir / "out-dsat")

    def test_presets_without_their_package(self):
        self.environment["PYTHONPATH"] = str(FIXTURES)
        printed = self.refuse("swift sft --deepspeed zero2 --output_dir out")
        self.assertIn("the package swift, which has this preset, was not found: copy swift/config/zero2.json", printed)

    def test_bad_settings_of_accelerate(self):
        base = "distributed_type: DEEPSPEED\ndeepspeed_config:\n"
        for text, why in ((base + "  zero_stage: 2\n  deepspeed_config_file: ds.json\n",
                           "acc.yaml:3:3: zero_stage beside a configuration file"),
                          (base + "  zero_stage: 7\n", "acc.yaml:3:3: zero_stage '7' is no ZeRO stage"),
                          (base + "  gradient_clipping: much\n", "gradient_clipping 'much' is no number"),
                          (base + "  offload_optimizer_device: disk\n", "'disk' is no device"),
                          (base + "  offload_param_device: nvme\n", "offload_param_nvme_path"),
                          (base + "\tzero_stage: 2\n", "a tab indents")):
            with self.subTest(why):
                self.write("acc.yaml", text)
                self.assertIn(why, self.refuse("accelerate launch --config_file acc.yaml train.py --output_dir o"))
        self.assertIn("nowhere.yaml: no such file",
                      self.refuse("accelerate launch --config_file nowhere.yaml train.py --output_dir o"))
        self.assertIn("add --use_deepspeed before the script",
                      self.refuse("accelerate launch --deepspeed_config_file ds.json train.py --output_dir o"))


class Table(unittest.TestCase):
    def test_each_row_of_the_table_is_a_test(self):
        text = (PROJECT / "docs/launchers.md").read_text()
        named = re.findall(r"\| `(test_\w+)` \|", text)
        printed = (pathlib.Path(__file__).parent / "test_printed_metric.py").read_text()
        tests = {name for name in dir(Frameworks) if name.startswith("test_")}
        tests |= set(re.findall(r"def (test_\w+)\(", printed))
        self.assertGreaterEqual(len(named), 12)
        self.assertEqual(set(named) - tests, set())


if __name__ == "__main__":
    unittest.main()
