"""dsat-host serve: who is let in, what follows a running study, what survives a study that goes away."""
import gzip
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

from support import HOST, PROJECT, HostTest, SCRIPT

SIM = PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"


class ServeTest(HostTest):
    def study(self, name="study", trials=4, options=()):
        result = self.run_host(["--runner", "sim", "--sim", SIM, "--searcher", "random", "--max-trials", trials,
                                "--output-dir", name, "--quiet", *options], [])
        self.assertEqual(result.returncode, 0, result.stderr)

    def serve(self, *dirs, options=()):
        process = self.start_host([HOST, "serve", *dirs, *map(str, options)])
        line = process.stdout.readline()
        url = re.search(r"http://\S+", line)
        self.assertTrue(url, line)
        self.at = urllib.parse.urlsplit(url.group())
        self.wait_for(lambda: self.get()[0] != 503)  # a busy machine answers before it has read the studies
        return process

    def get(self, name="", method="GET", path=None, body=None, **headers):
        connection = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=30)
        self.addCleanup(connection.close)
        headers = {key.replace("_", "-"): value for key, value in headers.items()}
        connection.request(method, self.at.path + name if path is None else path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer

    def data(self, number=0):
        status, text, _ = self.get(f"study/{number}.json")
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_the_page_and_its_data_are_read_with_the_token_alone(self):
        self.study()
        self.serve("study")
        self.assertEqual(self.at.hostname, "127.0.0.1")
        status, page, answer = self.get()
        self.assertEqual((status, b"<!doctype html>" in page, answer.getheader("X-Frame-Options")), (200, True, "DENY"))
        document = self.data()
        self.assertEqual([trial["id"] for trial in document["trials"]], [0, 1, 2, 3])
        status, text, answer = self.get("study/0.json", Accept_Encoding="gzip")
        self.assertEqual(json.loads(gzip.decompress(text))["best_path"], document["best_path"])
        self.assertEqual(self.get("study/0.json", If_None_Match=answer.getheader("ETag"))[0], 304)
        self.assertEqual(json.loads(self.get("studies.json")[1])[0]["started"], 4)

        self.assertEqual(self.get(path="/")[0], 403)
        self.assertEqual(self.get(path="/study/0.json")[0], 403)
        self.assertEqual(self.get(path="/" + "0" * 32 + "/")[0], 403)
        self.assertEqual(self.get(path=self.at.path[:-2] + "/")[0], 403)
        self.assertEqual(self.get("study/1.json")[0], 404)
        for climbing in ("../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "study/../../dsat.db", "study/-1.json",
                         "study/0.json/x"):
            self.assertEqual(self.get(climbing)[0], 404, climbing)

    def test_other_sites_other_methods_and_large_requests_are_refused(self):
        self.study()
        self.serve("study")
        self.assertEqual(self.get(Host="evil.example")[0], 403)
        self.assertEqual(self.get(Host=f"localhost:{self.at.port}")[0], 200)
        self.assertEqual(self.get(Origin="http://evil.example")[0], 403)
        self.assertEqual(self.get(Origin="null")[0], 403)
        self.assertEqual(self.get(Origin=f"http://127.0.0.1:{self.at.port}")[0], 200)
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            self.assertEqual(self.get("study/0.json", method=method, body=b"x")[0], 405, method)
        self.assertIn(self.get("x" * 20000)[0], (400, 403, 404, 414))
        with socket.create_connection((self.at.hostname, self.at.port), timeout=30) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: 127.0")
            self.assertEqual(self.get()[0], 200, "others are answered meanwhile")
            slow.settimeout(30)
            self.assertNotIn(b" 200 ", slow.recv(1000), "it is given up")

    def test_fifty_readers_follow_sixteen_concurrent_trials(self):
        self.write_config({"train_micro_batch_size_per_gpu": 1})
        options = ["--output-dir", "study", "--slots", 16, "--slots-per-trial", 1, "--max-trials", 40, "--quiet",
                   "--no-probe", "--searcher", "random"]
        tuning = self.start_host(self.arguments(options, SCRIPT + ["--deepspeed_config", "ds_config.json"]))
        show = [HOST, "show", "study"]
        self.wait_for(lambda: subprocess.run(show, cwd=self.dir, capture_output=True, check=False).returncode == 0)
        self.serve("study")
        seen, failures = [set() for _ in range(50)], []

        def read(number):
            try:
                connection = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=60)
                for _ in range(6):
                    connection.request("GET", self.at.path + "studies.json")
                    answer = connection.getresponse()
                    text = answer.read()
                    if answer.status != 200:
                        failures.append(answer.status)
                    seen[number].add(json.loads(text)[0]["started"])
                connection.close()
            except Exception as error:  # pylint: disable=broad-except
                failures.append(repr(error))

        readers = [threading.Thread(target=read, args=(i,)) for i in range(50)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.assertEqual(failures, [])
        tuning.communicate(timeout=200)
        end = time.monotonic() + 30
        while self.data()["study"]["status"] == "running" and time.monotonic() < end:
            time.sleep(0.1)
        document = self.data()
        self.assertIn(document["study"]["status"], ("completed", "no_best"))
        self.assertEqual({trial["place"] for trial in document["trials"] if trial["attempt"]}, {"ended"})

    def test_the_list_tells_how_many_trials_had_ended_with_each_step_of_the_best_path(self):
        self.study(trials=40, options=["--slots-per-trial", 1])
        self.serve("study")
        line, document = json.loads(self.get("studies.json")[1])[0], self.data()
        ended = [trial["id"] for trial in sorted(document["trials"], key=lambda one: (one["ended_at"] or "", one["id"]))
                 if trial["attempt"] > 0 and trial["place"] == "ended"]
        self.assertNotEqual(ended, sorted(ended), "trials ran side by side")
        self.assertEqual([step["trial"] for step in line["best_path"]],
                         [step["trial"] for step in document["best_path"]])
        self.assertEqual([step["ended"] for step in line["best_path"]],
                         [ended.index(step["trial"]) + 1 for step in line["best_path"]])
        self.assertEqual(line["ended"], len(ended))

    def test_a_study_that_is_deleted_or_damaged_costs_one_line(self):
        self.study("a")
        self.study("b")
        process = self.serve("a", "b")
        shutil.rmtree(self.dir / "a")
        self.wait_for(lambda: self.get("study/0.json")[0] == 503)
        self.assertEqual(len(self.data(1)["trials"]), 4)
        (self.dir / "b/dsat.db").write_bytes(b"rubbish" * 5000)
        self.wait_for(lambda: self.get("study/1.json")[0] == 503)
        # The list follows its studies a moment later.
        self.wait_for(lambda: [bool(one["error"]) for one in json.loads(self.get("studies.json")[1])] == [True, True])
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(errors.strip().splitlines()), 2, errors)

    def test_it_ends_however_early_it_is_asked_to(self):
        self.study()
        for _ in range(30):
            process = self.serve("study")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, 0)

    def wait_for(self, true):
        end = time.monotonic() + 30
        while not true():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_wrong_use_is_one_line(self):
        self.study()
        self.serve("study")
        for arguments, part in ((["serve"], "run directory"), (["serve", "none"], "no dsat.db"),
                                (["serve", "study", "--port", str(self.at.port)], "in use"),
                                (["serve", "study", "--port", "70000"], "65535")):
            done = subprocess.run([HOST, *arguments], cwd=self.dir, capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(part, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
