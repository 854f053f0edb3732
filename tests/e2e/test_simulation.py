"""Studies in a model of a cluster: --runner sim."""
import json
import os
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
        # The search of a long study takes ten seconds, and sixty times as long under a sanitizer of threads.
        limit_s = 1800 if "DSAT_SANITIZE" in os.environ else 300
        return subprocess.run(arguments, cwd=self.dir, capture_output=True, text=True, timeout=limit_s)


class Simulation(Simulated):
    def test_every_shipped_scenario_is_searched_by_its_name(self):
        files = sorted(SCENARIOS.glob("*.json"))
        self.assertGreater(len(files), 5)
        for file in files:
            with self.subTest(file.name):
                result = self.simulate("--json", "-mt", 20, "-z", 0, 1, 2, 3, "--output-dir", file.stem, file=file.stem)
                self.assert_ok(result)
                found = json.loads(result.stdout)
                self.assertEqual(found["status"], "completed")
                self.assertGreater(found["trials"]["completed"], 5)
                self.assertFalse((self.dir / file.stem / "trials").exists())

    def test_a_long_study_ends_when_its_trials_gain_nothing(self):
        # Noise alone promises a little of every trial. Believed, such promises lead through all of the 400 trials.
        cluster = json.loads((SCENARIOS / "256-gpus-in-32-trials-gpt2-xl.json").read_text())
        cluster["cluster"]["nodes"] = 64
        self.write_cluster(cluster)
        result = self.simulate("--json", "-mt", 400, "--max-concurrent-trials", 64, "--no-baseline", "--finals", 0)
        self.assert_ok(result)
        found = json.loads(result.stdout)
        self.assertEqual(found["status"], "completed")
        self.assertLess(sum(found["trials"].values()), 350)
        self.assertIn("less than the tolerance", found["reason"])

    def test_the_seed_decides_search_and_noise(self):
        for out, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.assert_ok(self.simulate("-mt", 20, "-r", seed, "--slots-per-trial", 1, "--output-dir", out))
        self.assertEqual(self.show("a")["trials"], self.show("b")["trials"])  # times and slots too
        self.assertNotEqual(self.decisions("a"), self.decisions("c"))

    def test_times_are_virtual(self):
        self.assert_ok(self.simulate("-mt", 20, "--searcher", "asha", "--slots-per-trial", 4, "--output-dir", "out"))
        trials = self.show("out")["trials"]
        self.assertEqual(trials[0]["started_at"], "2000-01-01T00:00:00.000000Z")
        self.assertGreater(trials[-1]["ended_at"], "2000-01-01T00:13:00.000000Z")

    def test_the_time_budget_is_virtual(self):
        result = self.simulate("-mt", 500, "--searcher", "asha", "--time-budget", "30m", "--json",
                               "--output-dir", "out")
        self.assert_ok(result)
        self.assertIn("time budget", json.loads(result.stdout)["reason"])
        self.assertLess(max(t["ended_at"] or "" for t in self.show("out")["trials"]), "2000-01-01T00:31:00")

    def resume(self, *options):
        return subprocess.run([HOST, "resume", "out", *options], cwd=self.dir, capture_output=True, text=True,
                              timeout=60)

    def test_a_study_that_lacked_time_is_given_more(self):
        self.assertEqual(self.simulate("-mt", 20, "--time-budget", "30s", "--output-dir", "out").returncode, 1)
        self.assertIn("a --time-budget", self.resume().stdout)
        self.assert_ok(self.resume("--time-budget", "10h"))
        trials = self.show("out")["trials"]
        self.assertGreater(len(trials), 10)
        # Time was not what it lacked: more of it is no use, and a line says so.
        ended = self.resume("--time-budget", "20h")
        self.assertIn("--max-trials above 20", ended.stdout)
        self.assertEqual(len(self.show("out")["trials"]), len(trials))

    def test_a_raised_limit_goes_on_where_the_study_ended(self):
        options = ("--searcher", "asha", "--slots-per-trial", 4)
        self.assert_ok(self.simulate("-mt", 20, *options, "--output-dir", "short"))
        self.assert_ok(self.simulate("-mt", 40, *options, "--output-dir", "long"))
        (self.dir / "cluster.json").unlink()  # the journal has it
        result = subprocess.run([HOST, "resume", "short", "-mt", "40"], cwd=self.dir, capture_output=True, text=True,
                                timeout=60)
        self.assert_ok(result)
        self.assertEqual(self.decisions("short"), self.decisions("long"))
        trials = self.show("short")["trials"]
        begun = [trial for trial in trials[20:] if trial["started_at"]]
        self.assertTrue(begun)
        self.assertGreaterEqual(min(trial["started_at"] for trial in begun),
                                max(trial["ended_at"] for trial in trials[:20] if trial["ended_at"]))

    def test_a_command_gives_its_configuration_and_gets_its_best(self):
        result = self.simulate("-mt", 10, "--output-dir", "out", "--", command=self.command())
        self.assert_ok(result)
        self.assertTrue(all(t["config"]["fp16"]["enabled"] for t in self.show("out")["trials"]))
        self.assertIn("best_ds_config.json", (self.dir / "out" / "best_cmd.txt").read_text())

    def test_a_configuration_without_a_command(self):
        self.assert_ok(self.simulate("-mt", 10, "--ds-config", "ds_config.json", "--output-dir", "out"))
        self.assertFalse((self.dir / "out" / "best_cmd.txt").exists())
        self.assertTrue((self.dir / "out" / "best_ds_config.json").exists())


class Traces(Simulated):
    def record(self, *arguments):
        """A study's trials as trace.csv."""
        shown = subprocess.run([HOST, "show", *arguments, "--csv"],
                               cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assert_ok(shown)
        (self.dir / "trace.csv").write_text(shown.stdout)
        return shown.stdout

    @staticmethod
    def measured(trials):
        """Throughput by stage and micro batch."""
        return {(t["config"]["zero_optimization"]["stage"], t["config"]["train_micro_batch_size_per_gpu"]):
                t["metrics"]["throughput"]
                for t in trials if t["outcome"] == "completed" and "throughput" in t["metrics"]}

    def test_a_recorded_study_is_replayed(self):
        self.write_config({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1},
                           "autotuning": {"fast": True}})
        options = ["-m", "throughput", "-z", 1, 2, "--max-micro-batch", 6]
        self.assert_ok(self.run_host([*options, "-mt", 12, "--searcher", "random", "--slots-per-trial", 2,
                                      "--output-dir", "real"], self.command("--world-size", 2)))
        self.record("real")
        self.assert_ok(self.simulate(*options, "-mt", 30, "--searcher", "asha", "--output-dir", "replayed",
                                     file="trace.csv"))
        replayed = self.show("replayed")
        self.assertEqual(replayed["study"]["slots_per_trial"], 2)
        self.assertEqual(replayed["profile"]["num_params"], self.show("real")["profile"]["num_params"])
        real, again = self.measured(self.show("real")["trials"]), self.measured(replayed["trials"])
        both = set(real) & set(again)
        self.assertGreater(len(both), 2, (real, again))
        for key in both:
            self.assertAlmostEqual(again[key], real[key], places=6)

    def test_a_recorded_simulation_is_the_trace_of_its_replay(self):
        self.assert_ok(self.simulate("-mt", 20, "--searcher", "asha", "-z", 1, 2, "--output-dir", "first"))
        text = self.record("first")
        self.assertEqual(len(text.splitlines()), 1 + len([t for t in self.show("first")["trials"] if t["attempt"]]))
        self.assert_ok(self.simulate("-mt", 20, "--searcher", "asha", "-z", 1, 2, "--slots", 16,
                                     "--output-dir", "second", file="trace.csv"))
        second = self.show("second")
        self.assertEqual((second["study"]["slots_per_trial"], len(second["study"]["slots"])), (4, 16))
        best = max(t["metrics"]["FLOPS_per_gpu"] for t in self.show("first")["trials"]
                   if "FLOPS_per_gpu" in (t["metrics"] or {}))
        self.assertLessEqual(second["study"]["best"]["metric"], best * (1 + 1e-9))
        self.assertGreater(second["study"]["best"]["metric"], 0.5 * best)
        reasons = {t["reason"].split(",")[0] for t in second["trials"] if t["outcome"] == "completed" and t["reason"]}
        self.assertEqual(reasons, {"answered by the nearest recorded configuration"})

    def test_trials_that_verify_the_best_are_left_out(self):
        self.assert_ok(self.simulate("-mt", 20, "--verify", 50, "--searcher", "random", "--output-dir", "out"))
        exported = subprocess.run([HOST, "export", "out", "--format", "json"], cwd=self.dir, capture_output=True,
                                  text=True, timeout=60)
        trials = [t for t in json.loads(exported.stdout)["trials"] if t["attempt"]]
        verified = [t for t in trials if t["phase"] == "verification"]
        self.assertTrue(verified)
        self.assertEqual(len(self.record("out").splitlines()), 1 + len(trials) - len(verified))

    def test_a_table_and_an_object_at_once_are_refused(self):
        self.assert_ok(self.simulate("-mt", 5, "--output-dir", "out"))
        both = subprocess.run([HOST, "show", "out", "--csv", "--json"],
                              cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual((both.returncode, both.stdout, len(both.stderr.splitlines())), (2, "", 1))


class BadInput(Simulated):
    def refused(self, *words, options=(), file="cluster.json"):
        result = self.simulate("--output-dir", "out", *options, file=file)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual(result.stdout, "")
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
        self.refused_cluster("cluster", "gpus_per_trial", 0, "whole number from 1 on")
        self.refused_cluster("cluster", "device_memory", "a lot", "is no size")
        self.refused_cluster("cluster", "flops", "fast", "give a number")
        self.refused_cluster("model", "num_params", 7e9, "the shape has")
        self.refused_cluster("model", "heads", 7, "hidden")
        self.refused_cluster("model", "layers", None, "is missing")

    def test_files(self):
        self.refused("nowhere.json", file="nowhere.json")
        (self.dir / "cluster.json").write_text("{")
        self.refused("cluster.json:1")

    def test_links_of_several_nodes(self):
        nodes = {"nodes": 2, "inter_node_bandwidth": "25GB"}
        for change, words in (({"inter_node_bandwidth": 0}, "must be above 0"),
                              ({"inter_node_bandwidth": "-1GB"}, "is no size"),
                              ({"inter_node_bandwidth": None}, "inter_node_bandwidth"),
                              ({"gpus_per_trial": 6}, "multiple of"),
                              ({"inter_node_latency_us": -1}, "must not be negative"),
                              ({"nodes": 1.5}, "whole number")):
            self.write_cluster({**CLUSTER, "cluster": {**CLUSTER["cluster"], **nodes, **change}})
            self.refused("cluster.json: cluster.", words)

    def refused_trace(self, text, *words, options=()):
        (self.dir / "trace.csv").write_text(text)
        self.refused(*words, options=options, file="trace.csv")

    def test_traces(self):
        sized = "model_info,num_params,throughput,%s\n1,1000,,%s\n,,10,%s\n"
        self.refused_trace("", "trace.csv: it has no trials")
        self.refused_trace(sized % ("weather", "", "rain"), "unknown column 'weather'")
        self.refused_trace(sized % ("latncy", "", "3"), "unknown column 'latncy'", "'latency'")
        self.refused_trace(sized % ("zero_optimization.overlap_com", "", "true"), "'zero_optimization.overlap_comm'")
        self.refused_trace(sized % ("zero_optimization.stage", "", "4"),
                           "trial 2, zero_optimization.stage", "from 0 to 3")
        self.refused_trace(sized % ("train_micro_batch_size_per_gpu", "", "0"), "trial 2", "from 1 to")
        self.refused_trace(sized % ("slots", "", "1.5"), "trial 2, slots", "'1.5'")
        self.refused_trace("throughput\n10\n", "model's size")
        self.refused_trace(sized % ("latency", "", "-3"), "trial 2, latency", "'-3'")
        self.refused_trace(sized % ("latency", "", "5"),
                           "--metric FLOPS_per_gpu: this simulation gives only latency, throughput")
        self.refused("nowhere.csv", file="nowhere.csv")

    def test_spaces(self):
        (self.dir / "space.json").write_text('{"zero_optimization.reduce_bucket_size": []}')
        self.refused("reduce_bucket_size", options=("--space", "space.json"))
        (self.dir / "space.json").write_text('{"zero_optimization.reduce_bucket_size": [0, -5]}')
        self.refused("reduce_bucket_size", options=("--space", "space.json", "-z", 1, 2))
        self.refused("--min-micro-batch", "at least 1", options=("--min-micro-batch", 0))
        self.refused("--max-train-batch-size", options=("--max-train-batch-size", 2, "--min-micro-batch", 8))
        self.refused("--zero-stages", options=("-z", 5))
        (self.dir / "pipeline.json").write_text('{"train_micro_batch_size_per_gpu": 1, "pipeline": {"stages": 2}}')
        self.refused("pipeline", options=("--ds-config", "pipeline.json", "-z", 2, 3))

    def test_options(self):
        self.refused("unknown metric 'loss'", options=("--metric", "loss"))
        self.refused("--slots 8", "only 4 devices", options=("--slots", 8))
        self.refused("--max-micro-batch 4 is below", options=("--min-micro-batch", 8, "--max-micro-batch", 4))
        self.refused("single configuration", "micro batch 4",
                     options=("-z", 0, "--min-micro-batch", 4, "--max-micro-batch", 4))
        self.refused("global", options=("--global-batch", 7, "--slots-per-trial", 4))


if __name__ == "__main__":
    unittest.main()
