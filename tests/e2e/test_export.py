"""Exports of a study, read back:
csv by csv, JSON by json, event files record by record, MLflow's files and requests."""
import base64
import csv
import http.server
import io
import json
import os
import re
import struct
import subprocess
import threading
import unittest

from support import HOST, HostTest


def fields(message):
    """The fields of a protocol-buffer message: {number: [values]}."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        kind, number = key & 7, key >> 3
        if kind == 0:
            value = varint()
        elif kind == 1:
            value, at = struct.unpack_from("<d", message, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", message, at)[0], at + 4
        else:
            size = varint()
            value, at = message[at:at + size], at + size
        found.setdefault(number, []).append(value)
    return found


def summary_values(path):
    """The summary values of an event file, by tag."""
    data, at, values = path.read_bytes(), 0, {}
    while at < len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        event = fields(data[at + 12:at + 12 + size])
        at += size + 16
        for summary in event.get(5, []):
            for value in fields(summary)[1]:
                value = fields(value)
                values[value[1][0].decode()] = value
    return values


def plugin_data(value):
    """HParamsPluginData of a summary value: its metadata's plugin_data's content."""
    plugin = fields(fields(value[9][0])[1][0])
    assert plugin[1] == [b"hparams"], plugin
    return fields(plugin[2][0])


class MlflowRequests(http.server.BaseHTTPRequestHandler):
    """Answers as the documented interface does, and keeps what came."""

    def do_GET(self):
        self.answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, body, self.headers.get("Authorization")))
        answers = {"experiments/create": {"experiment_id": "7"}, "runs/create": {"run": {"info": {"run_id": "r"}}}}
        if self.server.refuse:
            return self.answer(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "no\x1b[2J way"})
        self.answer(200, answers.get(self.path.partition("/mlflow/")[2], {}))

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments):
        pass


class Export(HostTest):
    @classmethod
    def setUpClass(cls):
        cls.study = cls("run_host")
        cls.study.setUp()
        result = cls.study.run_host(["--searcher", "random", "--max-trials", "8", "--output-dir", "run"])
        assert result.returncode == 0, result.stderr
        cls.run_dir = cls.study.dir / "run"

    @classmethod
    def tearDownClass(cls):
        cls.study.doCleanups()

    def export(self, *arguments, status=0, run_dir=None, environment=None, cwd=None):
        command = [HOST, "export", str(run_dir or self.run_dir), *map(str, arguments)]
        result = subprocess.run(command, cwd=cwd or self.dir, capture_output=True, timeout=60, env=environment)
        self.assertEqual(result.returncode, status, result.stderr)
        if status:
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        return result.stdout.decode() if status == 0 else result.stderr.decode()

    def trials(self):
        return self.show(self.run_dir)["trials"]

    def measured(self):
        return [trial for trial in self.trials() if trial["attempt"] and "model" not in trial["note"].lower()]

    def test_csv_has_a_row_a_trial_and_a_column_a_leaf(self):
        rows = list(csv.DictReader(io.StringIO(self.export("--format", "csv"), newline="")))
        trials = self.trials()
        self.assertEqual([row["id"] for row in rows], [str(trial["id"]) for trial in trials])
        for row, trial in zip(rows, trials):
            self.assertEqual(row["outcome"], trial["outcome"])
            if trial["metrics"] and "FLOPS_per_gpu" in trial["metrics"]:
                self.assertEqual(float(row["metrics.FLOPS_per_gpu"]), trial["metrics"]["FLOPS_per_gpu"])
            self.assertEqual(row["config.zero_optimization.stage"], str(trial["config"]["zero_optimization"]["stage"]))

    def test_json_is_one_document_and_jsonl_one_a_trial(self):
        document = json.loads(self.export("--format", "json", "-o", "a.json") or (self.dir / "a.json").read_text())
        lines = [json.loads(line) for line in self.export("--format", "jsonl").splitlines()]
        self.assertEqual(lines, document["trials"])
        self.assertEqual([line["id"] for line in lines], [trial["id"] for trial in self.trials()])

    def test_tensorboard_has_a_session_of_hparams_for_each_trial(self):
        self.export("--format", "tensorboard", "-o", "tb")
        root = next((self.dir / "tb").glob("events.out.tfevents.*"))
        experiment = fields(plugin_data(summary_values(root)["_hparams_/experiment"])[2][0])
        names = [fields(info)[1][0].decode() for info in experiment[4]]
        self.assertIn("zero_optimization.stage", names)
        metrics = [fields(fields(info)[1][0])[2][0].decode() for info in experiment[5]]
        self.assertEqual(metrics[0], "FLOPS_per_gpu")
        sessions = sorted((self.dir / "tb").glob("trial_*/events.out.tfevents.*"))
        self.assertEqual(len(sessions), len(self.measured()))
        by_id = {trial["id"]: trial for trial in self.trials()}
        for path in sessions:
            trial = by_id[int(path.parent.name[-5:])]
            values = summary_values(path)
            start = fields(plugin_data(values["_hparams_/session_start_info"])[3][0])
            hparams = {entry[1][0].decode(): fields(entry[2][0]) for entry in map(fields, start[1])}
            self.assertEqual(hparams["zero_optimization.stage"][2], [trial["config"]["zero_optimization"]["stage"]])
            end = fields(plugin_data(values["_hparams_/session_end_info"])[4][0])
            self.assertEqual(end[1], [1 if trial["outcome"] == "completed" else 2])
            if trial["metrics"]:
                self.assertAlmostEqual(values["FLOPS_per_gpu"][2][0] / trial["metrics"]["FLOPS_per_gpu"], 1, 5)

    def test_mlflow_files_are_a_run_each_and_a_second_export_replaces_the_first(self):
        for _ in range(2):
            self.export("--format", "mlflow", "-o", "mlruns")
        [experiment] = (self.dir / "mlruns").iterdir()
        meta = (experiment / "meta.yaml").read_text()
        self.assertIn(f"experiment_id: '{experiment.name}'", meta)
        runs = [path for path in experiment.iterdir() if path.is_dir()]
        self.assertEqual(len(runs), len(self.measured()))
        best = [run for run in runs if (run / "tags/dsat.best").exists()]
        self.assertEqual(len(best), 1)
        for run in runs:
            self.assertRegex(run.name, "^[0-9a-f]{32}$")
            self.assertIn(f'run_id: "{run.name}"', (run / "meta.yaml").read_text())
            self.assertTrue((run / "params/zero_optimization.stage").read_text().isdigit())
        timestamp, value, step = (best[0] / "metrics/FLOPS_per_gpu").read_text().split()
        self.assertGreater(int(timestamp), 10**12)
        trial = int((best[0] / "tags/mlflow.runName").read_text().split()[1])
        self.assertEqual(float(value), self.trials()[trial]["metrics"]["FLOPS_per_gpu"])

    def test_mlflow_names_are_short_and_each_its_own(self):
        odd = {"my/key": 1, "my_key": 2, "k" * 300: 3}
        optimizer = {"type": "Adam", "params": {"lr": 0.001, **odd}}
        self.write_config({"train_micro_batch_size_per_gpu": 1, "optimizer": optimizer})
        self.assert_ok(self.run_host(["--max-trials", "2", "--output-dir", "odd"]))
        self.export("--format", "mlflow", "-o", "mlruns", run_dir=self.dir / "odd")
        params = next((self.dir / "mlruns").glob("*/*/params"))
        values = {file.name: file.read_text() for file in params.glob("optimizer.params.[km]*")}
        self.assertEqual(sorted(values.values()), ["1", "2", "3"])
        self.assertEqual({"optimizer.params.my_key", "optimizer.params.my_key_2"},
                         {name for name in values if "my" in name})

    def serve(self, refuse=False):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), MlflowRequests)
        server.seen, server.refuse = [], refuse
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_mlflow_rest_sends_every_trial(self):
        server = self.serve()
        self.export("--format", "mlflow", "--mlflow-uri", f"http://127.0.0.1:{server.server_port}/prefix/",
                    environment={"MLFLOW_TRACKING_TOKEN": "secret"})
        paths = [path for path, _, _ in server.seen]
        runs = len(self.measured())
        self.assertEqual(paths[0], "/prefix/api/2.0/mlflow/experiments/create")
        self.assertEqual(paths.count("/prefix/api/2.0/mlflow/runs/create"), runs)
        self.assertEqual(paths.count("/prefix/api/2.0/mlflow/runs/update"), runs)
        batch = next(body for path, body, _ in server.seen if path.endswith("log-batch"))
        self.assertIn("zero_optimization.stage", [param["key"] for param in batch["params"]])
        self.assertEqual({authorization for _, _, authorization in server.seen}, {"Bearer secret"})

    def test_mlflow_rest_signs_in_with_name_and_password(self):
        server = self.serve()
        self.export("--format", "mlflow", "--mlflow-uri", f"http://127.0.0.1:{server.server_port}",
                    environment={"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "secret"})
        basic = "Basic " + base64.b64encode(b"me:secret").decode()
        self.assertEqual({authorization for _, _, authorization in server.seen}, {basic})

    def test_a_server_that_refuses_or_is_not_there_is_one_line(self):
        refusing = self.serve(refuse=True)
        uri = f"http://127.0.0.1:{refusing.server_port}"
        message = self.export("--format", "mlflow", "--mlflow-uri", uri, status=4)
        self.assertIn("status 400: no way", message)
        message = self.export("--format", "mlflow", "--mlflow-uri", "http://127.0.0.1:1", status=4)
        self.assertIn("does the server run", message)
        self.assertIn("give http://", self.export("--format", "mlflow", "--mlflow-uri", "ftp://x", status=2))

    def test_prometheus_has_the_status_the_trials_and_the_best(self):
        text = self.export("--format", "prometheus")
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) dsat_\w+ .+|dsat_\w+\{study="[^"]+"(,\w+="[^"]*")*\} [-+.e\d]+)$')
        self.assertRegex(text, r'dsat_study_status\{study="[^"]+",dir="/[^"]+",status="completed"\} 1\n')
        completed = sum(trial["outcome"] == "completed" and not trial["duplicate_of"] for trial in self.trials())
        self.assertIn(f'outcome="completed"}} {completed}\n', text)
        best = self.show(self.run_dir)["best"]
        value = float(re.search(r'dsat_best_value\{.*\} (.*)', text).group(1))
        self.assertEqual(value, best["metric"])

    def test_a_pipe_gets_the_bytes_and_a_link_stays_one(self):
        os.mkfifo(self.dir / "pipe")
        (self.dir / "far").mkdir()
        (self.dir / "far/a.csv").write_text("old")
        (self.dir / "link").symlink_to("far/a.csv")
        with subprocess.Popen(["cat", "pipe"], cwd=self.dir, stdout=subprocess.PIPE) as reader:
            self.export("--format", "csv", "-o", "pipe")
            read = reader.stdout.read().decode()
        self.export("--format", "csv", "-o", "link")
        self.assertEqual(read, self.export("--format", "csv"))
        self.assertEqual((self.dir / "far/a.csv").read_bytes().decode(), read)
        self.assertTrue((self.dir / "link").is_symlink())
        self.assertTrue((self.dir / "pipe").is_fifo())

    def test_bad_targets_are_one_line_and_leave_the_study_as_it_is(self):
        before = {path: path.read_bytes() for path in self.run_dir.iterdir() if path.is_file()}
        for name in ("dsat.db", "dsat.db.new", "dsat.db.damaged-1", "experiment.json", "deepspeed.json", "report.html"):
            self.assertIn("the study itself", self.export("--format", "csv", "-o", self.run_dir / name, status=2))
        for name in ("dsat.db-none", "best_none/a"):
            message = self.export("--format", "csv", "-o", name, run_dir=".", cwd=self.run_dir, status=2)
            self.assertIn("the study itself", message)
        report = [HOST, "report", str(self.run_dir), "-o", str(self.run_dir / "dsat.db")]
        result = subprocess.run(report, capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1), result.stderr)
        self.assertIn("study", self.export("--format", "tensorboard", "-o", self.run_dir, status=2))
        self.assertIn("study", self.export("--format", "mlflow", "-o", self.run_dir / "x/../trials/a", status=2))
        self.assertIn("is a folder", self.export("--format", "csv", "-o", self.dir, status=2))
        self.export("--format", "csv", "-o", self.dir / "no/such/folder.csv", status=4)
        (self.dir / "file").write_text("")
        message = self.export("--format", "tensorboard", "-o", self.dir / "file", status=2)
        self.assertIn("cannot make this folder", message)
        self.export("--format", "csv", "-o", "/proc/version", status=4)
        self.assertEqual(before, {path: path.read_bytes() for path in self.run_dir.iterdir() if path.is_file()})

    def test_no_study_and_a_damaged_one_are_one_line(self):
        self.export("--format", "csv", run_dir=self.dir / "nothing", status=2)
        damaged = self.dir / "damaged"
        damaged.mkdir()
        data = bytearray((self.run_dir / "dsat.db").read_bytes())
        data[100:6000] = b"\xff" * 5900
        (damaged / "dsat.db").write_bytes(data)
        for kind in ("csv", "tensorboard", "mlflow", "prometheus"):
            self.export("--format", kind, run_dir=damaged, status=4)
        self.assertEqual([path.name for path in damaged.iterdir()], ["dsat.db"])

    def test_the_format_is_needed_and_known(self):
        self.assertIn("--format", self.export(status=2))
        self.assertIn("tensorboard", self.export("--format", "xml", status=2))


class Show(HostTest):
    def test_of_a_running_study_tells_how_far_it_is_and_what_runs(self):
        command = self.arguments(["--output-dir", "run", "--max-trials", "7"], self.command("--misbehave", "hang"))
        process = self.start_host(command)
        while not self.is_running():
            self.assertIsNone(process.poll())
        document = self.show(self.dir / "run")
        self.assertIsNone(document["best"])
        self.assertEqual(document["progress"]["max_trials"], 7)
        self.assertEqual(document["progress"]["running"], 1)
        text = subprocess.run([HOST, "show", "run"], cwd=self.dir, capture_output=True, text=True, timeout=60).stdout
        self.assertIn("0/7 trials", text)
        self.assertRegex(text, r"running   trial 0  stage \d  micro batch +\d+ +\d+:\d\d")

    def is_running(self):
        if not (self.dir / "run/dsat.db").exists():
            return False
        result = subprocess.run([HOST, "show", "run", "--json"],
                                cwd=self.dir, capture_output=True, text=True, timeout=60)
        return result.returncode == 0 and any(trial["started_at"] for trial in json.loads(result.stdout)["trials"])

    def test_follow_shows_the_trials_until_the_study_ends(self):
        options = ["--output-dir", "run", "--max-trials", "12", "--searcher", "random"]
        process = self.start_host(self.arguments(options, self.command()))
        while not self.is_running():
            self.assertIsNone(process.poll())
        result = subprocess.run([HOST, "show", "run", "--follow"],
                                cwd=self.dir, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("status  completed", result.stdout)


if __name__ == "__main__":
    unittest.main()
