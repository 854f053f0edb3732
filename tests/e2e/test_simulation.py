"""Studies in a model of a cluster: --runner sim."""
import json
import pathlib
import subprocess
import unittest

from support import HOST, HostTest

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "sim"
CLUSTER = {
    "model": {"layers": 24, "hidden": 1024, "heads": 16, "seq": 1024, "vocab": 50257},
    "cluster": {"gpus_per_node": 4, "device_memory": "40GiB", "flops": 312e12, "intra_node_bandwidth": "300GB"},
}


class Simulated(HostTest):
    def setUp(self):
        super().setUp()
        self.write_cluster(CLUSTER)

    def write_cluster(self, cluster):
        (self.dir / "cluster.json").write_text(json.dumps(cluster))

    def simulate(self, *options, file="cluster.json", command=()):
        arguments = [HOST, "--runner", "sim", "--sim", str(file), *map(str, options), *command]
        return subprocess.run(arguments, cwd=self.dir, capture_output=True, text=True, timeout=120)


class Simulation(Simulated):
    def test_every_shipped_scenario_is_searched(self):
        files = sorted(SCENARIOS.glob("*.json"))
        self.assertGreater(len(files), 5)
        for file in files:
            with self.subTest(file.name):
                result = self.simulate("--json", "-mt", 20, "-z", 0, 1, 2, 3, "--output-dir", file.stem, file=file)
                self.assert_ok(result)
                found = json.loads(result.stdout)
                self.assertEqual(found["status"], "completed")
                self.assertGreater(found["trials"]["completed"], 5)
                self.assertFalse((self.dir / file.stem / "trials").exists())

    def test_the_seed_decides_search_and_noise(self):
        for out, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.assert_ok(self.simulate("-mt", 20, "-r", seed, "--slots-per-trial", 1, "--output-dir", out))
        self.assertEqual(self.show("a")["trials"], self.show("b")["trials"])  # times and slots too
        self.assertNotEqual(self.decisions("a"), self.decisions("c"))

    def test_times_are_virtual(self):
        self.assert_ok(self.simulate("-mt", 20, "--slots-per-trial", 4, "--output-dir", "out"))
        trials = self.show("out")["trials"]
        self.assertEqual(trials[0]["started_at"], "2000-01-01T00:00:00.000000Z")
        self.assertGreater(trials[-1]["ended_at"], "2000-01-01T00:13:00.000000Z")

    def test_the_time_budget_is_virtual(self):
        result = self.simulate("-mt", 500, "--time-budget", "30m", "--json", "--output-dir", "out")
        self.assert_ok(result)
        self.assertIn("time budget", json.loads(result.stdout)["reason"])
        self.assertLess(max(t["ended_at"] or "" for t in self.show("out")["trials"]), "2000-01-01T00:31:00")

    def test_a_raised_limit_goes_on_where_the_study_ended(self):
        self.assert_ok(self.simulate("-mt", 20, "--slots-per-trial", 4, "--output-dir", "short"))
        self.assert_ok(self.simulate("-mt", 40, "--slots-per-trial", 4, "--output-dir", "long"))
        (self.dir / "cluster.json").unlink()  # the journal has it
        result = subprocess.run([HOST, "resume", "short", "-mt", "40"], cwd=self.dir, capture_output=True, text=True,
                                timeout=60)
        self.assert_ok(result)
        self.assertEqual(self.decisions("short"), self.decisions("long"))

    def test_a_command_gives_its_configuration_and_gets_its_best(self):
        result = self.simulate("-mt", 10, "--output-dir", "out", "--", command=self.command())
        self.assert_ok(result)
        self.assertTrue(all(t["config"]["fp16"]["enabled"] for t in self.show("out")["trials"]))
        self.assertIn("best_ds_config.json", (self.dir / "out" / "best_cmd.txt").read_text())

    def test_a_configuration_without_a_command(self):
        self.assert_ok(self.simulate("-mt", 10, "--ds-config", "ds_config.json", "--output-dir", "out"))
        self.assertFalse((self.dir / "out" / "best_cmd.txt").exists())
        self.assertTrue((self.dir / "out" / "best_ds_config.json").exists())


class BadInput(Simulated):
    def refused(self, *words, options=(), file="cluster.json"):
        result = self.simulate("--output-dir", "out", *options, file=file)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertFalse((self.dir / "out").exists())

    def refused_cluster(self, section, key, value, *words):
        cluster = json.loads(json.dumps(CLUSTER))
        if value is None:
            del cluster[section][key]
        else:
            cluster[section][key] = value
        self.write_cluster(cluster)
        self.refused("cluster.json", key, *words)

    def test_scenarios(self):
        self.refused_cluster("cluster", "flops", None, "is missing")
        self.refused_cluster("cluster", "intra_node_bandwidth", 0, "must be above 0")
        self.refused_cluster("cluster", "intra_node_bandwidth", -3e9, "must be above 0")
        self.refused_cluster("cluster", "gpus_per_nod", 4, "is unknown")
        self.refused_cluster("cluster", "gpus_per_trial", 8, "nodes x gpus_per_node is 4")
        self.refused_cluster("model", "num_params", 7e9, "the shape has")

    def test_files(self):
        self.refused("nowhere.json", file="nowhere.json")
        (self.dir / "cluster.json").write_text("{")
        self.refused("cluster.json:1")

    def test_options(self):
        self.refused("unknown metric 'loss'", options=("--metric", "loss"))
        self.refused("--slots 8", "only 4 devices", options=("--slots", 8))
        self.refused("--max-micro-batch 4 is below", options=("--min-micro-batch", 8, "--max-micro-batch", 4))
        self.refused("single configuration", "micro batch 4",
                     options=("-z", 0, "--min-micro-batch", 4, "--max-micro-batch", 4))
        self.refused("global", options=("--global-batch", 7, "--slots-per-trial", 4))


if __name__ == "__main__":
    unittest.main()
