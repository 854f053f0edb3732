"""Space files: axes of every kind at once, conditions between them, and the schema that editors check them by."""
import json
import os
import re
import subprocess

from support import CONFIG, FIXTURES, HOST, PROJECT, HostTest

FRAMEWORKS = FIXTURES / "frameworks"
SCHEMA = json.loads((PROJECT / "sdk/config/space.schema.json").read_text())
TYPES = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}


def of_type(value, name):
    if name in ("number", "integer"):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and (name == "number" or value % 1 == 0)
    return isinstance(value, TYPES[name])


def fits(value, schema):
    """The keywords of JSON Schema that the file uses."""
    rules = {
        "$ref": lambda to: fits(value, SCHEMA["$defs"][to.rpartition("/")[2]]),
        "type": lambda names: any(of_type(value, name) for name in ([names] if isinstance(names, str) else names)),
        "anyOf": lambda some: any(fits(value, one) for one in some),
        "oneOf": lambda some: sum(fits(value, one) for one in some) == 1,
        "not": lambda other: not fits(value, other),
        "const": lambda wanted: value == wanted,
        "enum": lambda some: value in some and not isinstance(value, bool),
        "required": lambda names: not isinstance(value, dict) or all(name in value for name in names),
        "minItems": lambda least: not isinstance(value, list) or len(value) >= least,
        "maxItems": lambda most: not isinstance(value, list) or len(value) <= most,
        "minLength": lambda least: not isinstance(value, str) or len(value) >= least,
        "minimum": lambda least: not of_type(value, "number") or value >= least,
        "multipleOf": lambda step: not of_type(value, "number") or value % step == 0,
        "pattern": lambda text: not isinstance(value, str) or re.search(text, value) is not None,
        "items": lambda one: not isinstance(value, list) or all(fits(item, one) for item in value),
        "properties": lambda known: not isinstance(value, dict) or all(
            fits(value[name], one) for name, one in known.items() if name in value),
        "propertyNames": lambda one: not isinstance(value, dict) or all(fits(name, one) for name in value),
        "additionalProperties": lambda one: not isinstance(value, dict) or all(
            fits(item, one) if one else False for name, item in value.items() if name not in schema["properties"]),
    }
    about = ("$schema", "title", "description", "$defs")
    return all(rules[keyword](body) for keyword, body in schema.items() if keyword not in about)


KINDS = {
    "$schema": "/usr/share/dsat/space.schema.json",
    "zero_optimization.overlap_comm": {"values": [True, False], "stages": [2, 3]},
    "alloc": ["", "expandable"],
    "bind": ["", "--bind_cores_to_rank"],
    "gc": {"values": [None, "--checkpointing"], "if": "stage == 2"},
    "workers": {"range": [1, 8], "log": True},
    "dataloader_num_workers": [2, 4],
    "model.attention": {"values": ["sdpa", "flash"], "if": ["gc == --checkpointing", "workers >= 2"]},
    "chunks": {"values": [1, 2, 3], "divides": "workers"},
}
GOOD = [
    {"a": [1, "x", None, True]}, {"a": {"range": [1, 9], "step": 2}}, {"a": {"values": [1, 2], "divides": 4}},
    {"b": [2, 4], "a": {"values": [1, 2], "divides": "b"}}, {"a": {"values": [1, 2], "if": "micro_batch<8"}}, KINDS,
]
WRONG = [
    ({"a": 3}, "a is 3"), ({"a": []}, "empty list"), ({"a": [[1]]}, "single values"), ({"a": ["auto"]}, "auto"),
    ({"a": {"values": [1], "range": [1, 2]}}, "keep one"), ({"a": {"stages": [1]}}, 'no "values"'),
    ({"a": {"range": [1]}}, "two integers"), ({"a": {"range": [1.5, 3]}}, "two integers"),
    ({"a": {"range": [1, 4], "step": 0}}, "at least 1"), ({"a": {"range": [1, 4], "log": 1}}, "true or false"),
    ({"a": {"values": [1, 2], "stages": [4]}}, "0 to 3"), ({"a": {"values": [1, 2], "when": "b"}}, "member 'when'"),
    ({"a": {"values": [1, 2], "if": "stage"}}, "write it as"), ({"a": {"values": [1, 2], "if": []}}, "must be a text"),
    ({"a": {"values": [1, 2], "divides": 0}}, "positive integer"), ({"": [1, 2]}, "a key is empty"),
]
# What no schema can say.
CONTRADICTORY = [
    ({"a": {"values": [1, 2], "if": "b == 1"}}, "names 'b'"),
    ({"b": [1, 2], "a": {"values": [1, 2], "if": ["b == 1", "b == 2"]}}, "no value of b fits"),
    ({"a": {"values": [1, 2], "if": ["stage == 1", "stage == 2"]}}, "no ZeRO stage fits"),
    ({"a": {"values": [3, 5], "divides": "world_size"}}, "divides world_size = 1"),
]


class Spaces(HostTest):
    def setUp(self):
        super().setUp()
        self.write_config({**CONFIG, "zero_optimization": {"stage": 2}, "gradient_accumulation_steps": 1})
        (self.dir / "train.yaml").write_text("# mine\ndataloader_num_workers: 2  # of each rank\n"
                                             "learning_rate: 1.0e-4\nmodel:\n  attention: sdpa\n  name: small\n")
        (self.dir / "train.py").write_text(
            "import json, os, sys\nsys.path[:0] = [%r, %r]\nimport frameworks\nwords = sys.argv[1:]\n"
            "def after(flag): return words[words.index(flag) + 1]\n"
            "yaml = frameworks.read_yaml(after('--config'))\n"
            "frameworks.note('ran', json.dumps({'words': words, 'yaml': yaml, 'alloc': os.environ['ALLOC']}))\n"
            "frameworks.measure(frameworks.load(after('--deepspeed_config')))\n" % (str(FRAMEWORKS), str(FIXTURES)))
        self.environment = {**os.environ, "PATH": "%s:%s" % (FIXTURES / "bin", os.environ["PATH"])}

    COMMAND = ["env", "ALLOC={alloc}", "deepspeed", "{bind}", "--num_gpus", "1", "train.py", "--deepspeed_config",
               "ds_config.json", "--config", "train.yaml", "{gc}", "--workers", "{workers}", "--chunks", "{chunks}"]

    def study(self, space, *options, command=None):
        (self.dir / "space.json").write_text(json.dumps(space))
        arguments = [HOST, *options, "--space", "space.json", "--", *(command or self.COMMAND)]
        return subprocess.run(list(map(str, arguments)), cwd=self.dir, capture_output=True, text=True, timeout=240,
                              env=self.environment)

    def assert_legal(self, config):
        gc, attention = config.get("gc"), config.get("model", {}).get("attention", "sdpa")
        self.assertTrue(gc is None or config["zero_optimization"]["stage"] == 2, config)
        self.assertTrue(attention == "sdpa" or (gc and config["workers"] >= 2), config)
        self.assertEqual(config["workers"] % config.get("chunks", 1), 0, config)

    def test_axes_of_every_kind_in_a_study(self):
        before = (self.dir / "train.yaml").read_text()
        for searcher in ("random", "guided", "asha", "binary", "grid"):
            trials = 60 if searcher == "grid" else 14  # a grid turns the last axes last
            result = self.study(KINDS, "--output-dir", searcher, "--searcher", searcher, "--max-trials", trials,
                                "--finals", 0, "-z", 1, 2, "--max-micro-batch", 2)
            self.assert_ok(result)
            axes = set()
            for trial in self.show(searcher)["trials"]:
                config = trial["config"]
                if trial["attempt"] == 0:
                    continue
                self.assert_legal(config)
                folder = self.dir / searcher / "trials" / str(trial["id"])
                if trial["kind"] == "baseline":
                    self.assertEqual(config["dataloader_num_workers"], 2)
                    self.assertEqual(config["model"]["attention"], "sdpa")
                ran = json.loads((folder / "ran").read_text())
                self.assertEqual(ran["alloc"], config["alloc"])
                self.assertEqual(ran["yaml"]["dataloader_num_workers"], config["dataloader_num_workers"])
                self.assertEqual(ran["yaml"]["model"], {"attention": config["model"]["attention"], "name": "small"})
                self.assertEqual("--checkpointing" in ran["words"], config["gc"] is not None)
                self.assertEqual("--bind_cores_to_rank" in (folder / "cmd.txt").read_text(), config["bind"] != "")
                axes.add((config["alloc"], config["bind"], config["gc"], config["workers"], config["chunks"],
                          config["dataloader_num_workers"], config["model"]["attention"]))
            self.assertGreater(len(axes), 3, searcher)
            refused = [trial["reason"] for trial in self.show(searcher)["trials"]
                       if trial["outcome"] == "invalid_config"]
            self.assertEqual(refused, [], searcher)
            best = json.loads((self.dir / searcher / "best_ds_config.json").read_text())
            self.assert_legal(best)
            written = (self.dir / searcher / "best_train.yaml").read_text()
            self.assertIn("dataloader_num_workers: %d" % best["dataloader_num_workers"], written)
            self.assertIn('attention: "%s"' % best["model"]["attention"], written)
            self.assertIn("# mine\n", written)
            self.assertIn("learning_rate: 1.0e-4\n", written)
            self.assertIn("best_train.yaml", (self.dir / searcher / "best_cmd.txt").read_text())
        self.assertEqual((self.dir / "train.yaml").read_text(), before)

    def test_the_simulator_takes_the_same_axes(self):
        scenario = PROJECT / "examples/sim/1-gpu-gpt2-medium.json"
        space = {key: body for key, body in KINDS.items() if key != "$schema"}
        (self.dir / "space.json").write_text(json.dumps(space))
        result = subprocess.run([HOST, "--runner", "sim", "--sim", str(scenario), "--space", "space.json",
                                 "--output-dir", "sim", "--max-trials", "20", "--searcher", "random", "-z", "1", "2"],
                                cwd=self.dir, capture_output=True, text=True, timeout=240)
        self.assert_ok(result)
        searched = [trial["config"] for trial in self.show("sim")["trials"] if trial["kind"] == "search"]
        self.assertTrue(searched)
        for config in searched:
            self.assert_legal(config)

    def test_space_prints_each_kind(self):
        (self.dir / "space.json").write_text(json.dumps(KINDS))
        result = subprocess.run([HOST, "space", "--space", "space.json", "-z", "1", "2", "--", *self.COMMAND],
                                cwd=self.dir, capture_output=True, text=True, timeout=60, env=self.environment)
        self.assert_ok(result)
        for line in ("alloc: \"\" \"expandable\"\n    stages 1 2; --space space.json; 'ALLOC={alloc}' of the command\n",
                     "gc: null \"--checkpointing\"\n    stages 2; --space space.json; '{gc}' of the command\n",
                     "dataloader_num_workers: 2 4\n    stages 1 2; --space space.json; 'dataloader_num_workers' of "
                     "train.yaml\n",
                     "model.attention: \"sdpa\" \"flash\"\n    stages 1 2; --space space.json; 'model.attention' of "
                     "train.yaml; only if gc == --checkpointing; only if workers >= 2\n",
                     "; divides workers\n"):
            self.assertIn(line, result.stdout)

    def test_the_schema_and_the_host_refuse_the_same(self):
        for space in GOOD:
            self.assertTrue(fits(space, SCHEMA), space)
            self.assert_ok(self.print_space(space))
        for space, line in WRONG:
            self.assertFalse(fits(space, SCHEMA), space)
            self.assert_refused(space, line)
        for space, line in CONTRADICTORY:
            self.assertTrue(fits(space, SCHEMA), space)
            self.assert_refused(space, line)
        for file in (PROJECT / "examples/spaces").glob("*.json"):
            self.assertTrue(fits(json.loads(file.read_text()), SCHEMA), file)

    def test_axes_that_the_command_cannot_take(self):
        self.assert_refused({"gc": ["", "--checkpointing full"]}, "write '--checkpointing={gc}' in the command")
        self.COMMAND = ["env", "MASTER_PORT={port}", "CUDA_VISIBLE_DEVICES={devices}", *self.COMMAND[2:]]
        self.assert_refused({"port": [1, 2]}, "port is the variable MASTER_PORT")
        self.assert_refused({"devices": ["0", "1"]}, "leave it to dsat")

    def print_space(self, space):
        (self.dir / "space.json").write_text(json.dumps(space))
        return subprocess.run([HOST, "space", "--space", "space.json", "-z", "1", "2", "--slots", "1", "--",
                               *self.COMMAND], cwd=self.dir, capture_output=True, text=True, timeout=60,
                              env=self.environment)

    def assert_refused(self, space, line):
        result = self.print_space(space)
        self.assert_ok(result, 2)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertIn("--space space.json", result.stderr)
        self.assertIn(line, result.stderr)
