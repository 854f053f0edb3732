"""A machine that others use: what they put in one's way, what they can read, what they can ask of the server.

Root plays another user by giving files away; without root, those tests are skipped.
"""
import base64
import gzip
import hashlib
import http.server
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import threading
import time
import unittest
import urllib.parse

from support import HOST, PROJECT, SCRIPT, HostTest

SIM = PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"
OTHER = 54321
SECRET = "s3cr3t"

needs_root = unittest.skipUnless(os.geteuid() == 0, "only root can play another user")


class SharedMachine(HostTest):
    def ask(self, *arguments, status=None, timeout=60, **how):
        done = subprocess.run([HOST, *map(str, arguments)], cwd=self.dir, capture_output=True, text=True,
                              timeout=timeout, **how)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def study(self, name="study", **how):
        return self.ask("--runner", "sim", "--sim", SIM, "--searcher", "random", "--max-trials", 3, "--quiet",
                        "--output-dir", name, status=0, **how)

    def give_away(self, path):
        os.lchown(path, OTHER, OTHER)
        for folder, folders, files in os.walk(path):
            for name in folders + files:
                os.lchown(os.path.join(folder, name), OTHER, OTHER)

    def refused(self, done, *parts):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Folders(SharedMachine):
    def attempts(self):
        """Starts in the folder that the host chooses, and in one that is named."""
        quick = ["--max-trials", "1", "--quiet", "--no-probe"]
        name = "protocol_trial"
        yield lambda *more: self.run_host([*quick, *more]), self.dir / "dsat-results" / name
        yield lambda *more: self.run_host([*quick, "--output-dir", "run", *more]), self.dir / "run"

    @needs_root
    def test_a_folder_that_another_user_has_planted_is_not_used(self):
        mine = self.dir / "bashrc"
        self.dir.chmod(0o777)
        for start, folder in self.attempts():
            folder.mkdir(parents=True)
            os.symlink(mine, folder / "dsat.lock")
            mine.write_text("mine")
            self.give_away(folder.parent if folder.parent != self.dir else folder)
            self.refused(start(), "another user", "--trust-folder")
            self.assertEqual(mine.read_text(), "mine")
            if folder.parent == self.dir:
                self.refused(start("--trust-folder"), "dsat.lock", "it is a link")
                self.assertEqual(mine.read_text(), "mine")
                os.unlink(folder / "dsat.lock")
                self.assertIn(start("--trust-folder").returncode, (0, 1))
                self.assertTrue((folder / "dsat.db").exists())

    @needs_root
    def test_the_results_of_deepspeed_are_not_put_into_another_users_folder(self):
        self.dir.chmod(0o777)
        (self.dir / "autotuning_results").mkdir()
        self.give_away(self.dir / "autotuning_results")
        self.refused(self.run_host(["--autotuning", "tune", "--max-trials", 1, "--quiet"]), "autotuning_results",
                     "another user", "--trust-folder")
        self.assertEqual(list((self.dir / "autotuning_results").iterdir()), [])

    @needs_root
    def test_a_link_of_another_user_to_a_folder_of_ones_own_is_not_followed(self):
        self.dir.chmod(0o777)
        for start, folder in self.attempts():
            target = self.dir / ("own-" + folder.name)
            target.mkdir(mode=0o700)
            link = self.dir / folder.relative_to(self.dir).parts[0]
            os.symlink(target, link)
            os.lchown(link, OTHER, OTHER)
            self.refused(start(), "is a link that another user made")
            self.assertEqual(list(target.iterdir()), [])
            os.lchown(link, os.geteuid(), -1)
            self.assertIn(start().returncode, (0, 1))
            self.assertTrue((folder / "dsat.db").exists())

    def test_a_folder_that_everybody_can_write_to_is_not_used(self):
        for start, folder in self.attempts():
            folder = folder if folder.parent == self.dir else folder.parent
            folder.mkdir()
            folder.chmod(0o777)
            self.refused(start(), "everybody can write to it")
            self.assertEqual(list(folder.iterdir()), [])

    @needs_root
    def test_what_another_users_journal_names_is_run_only_if_asked_for(self):
        ran = self.dir / "ran"
        script = ["sh", "-c", f'touch {ran}; exec "$@"', "sh", *SCRIPT, "--deepspeed_config", "ds_config.json"]
        quick = ["--searcher", "random", "--max-trials", "2", "--quiet", "--no-probe", "--output-dir", "run"]
        self.assert_ok(self.run_host(quick, script))
        self.give_away(self.dir / "run")
        before = {path: os.stat(path).st_mtime_ns for path in (self.dir / "run").rglob("*")}
        ran.unlink()
        self.refused(self.ask("resume", "run", "--max-trials", 4), "another user", "--trust-folder")
        self.refused(self.ask("check", "run", "--repair"), "another user", "--trust-folder")
        done = self.ask("best", "run", status=0)
        self.assertIn("another user", done.stderr)
        self.assertIn("train_micro_batch_size_per_gpu", done.stdout, "it is read")
        self.ask("show", "run", status=0)
        self.assertEqual({path: os.stat(path).st_mtime_ns for path in (self.dir / "run").rglob("*")}, before)
        os.lchown(self.dir / "run", os.geteuid(), -1)
        self.refused(self.ask("resume", "run", "--max-trials", 4), "dsat.db", "another user")
        self.assertFalse(ran.exists())
        self.give_away(self.dir / "run")
        done = self.ask("resume", "run", "--max-trials", 4, "--trust-folder", "--no-such-option")
        self.assertEqual(done.returncode, 2)
        done = self.ask("resume", "run", "--max-trials", 4, "--trust-folder", timeout=240, status=0)
        self.assertTrue(ran.exists())
        self.assertLess(done.stdout.index(f"touch {ran}"), done.stdout.index("trial 2"), "it is shown first")

    def test_what_holds_secrets_is_for_its_owner_alone(self):
        (self.dir / "run").mkdir(mode=0o755)
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)
        self.study("run")
        for name in ("report.html", "dsat.db", "dsat.plan.json", "summary.txt", "best_ds_config.json"):
            self.assertEqual(stat.S_IMODE((self.dir / "run" / name).stat().st_mode), 0o600, name)
        (self.dir / "run/report.html").unlink()
        self.ask("report", "run", status=0)
        self.assertEqual(stat.S_IMODE((self.dir / "run/report.html").stat().st_mode), 0o600)

    def test_pipes_in_the_place_of_files_hold_nobody(self):
        self.study()
        ways = (["show", "study"], ["show", "study", "--json"], ["best", "study"], ["check", "study"],
                ["report", "study", "-o", "page.html"], ["export", "study", "--format", "csv"])
        for name in ("dsat.lock", "dsat.db-journal", "dsat.db-wal", "dsat.plan.json", "dsat.db"):
            (self.dir / "study" / name).unlink(missing_ok=True)
            os.mkfifo(self.dir / "study" / name)
            for arguments in ways:
                self.assertIn(self.ask(*arguments).returncode, (0, 2, 4), arguments)
            server = self.start_host([HOST, "serve", "study"])
            server.stdout.readline()  # its address, or its end
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=30)
            self.assertIn(server.returncode, (0, 2, 4), name)
            self.assertIn(self.ask("resume", "study", "--max-trials", 4, timeout=120).returncode, (0, 2, 4), name)
            (self.dir / "study" / name).unlink(missing_ok=True)
        self.refused(self.ask("show", "study"), "no dsat.db")

    @needs_root
    def test_output_goes_through_no_link_of_another_user(self):
        self.study()
        shared, mine = self.dir / "shared", self.dir / "mine"
        shared.mkdir()
        shared.chmod(0o777)
        mine.mkdir()
        (mine / "page.html").write_text("mine")
        os.symlink(mine / "page.html", shared / "page.html")
        os.symlink(mine, shared / "folder")
        for link in ("page.html", "folder"):
            os.lchown(shared / link, OTHER, OTHER)
        export = ("export", "study", "--format")
        for arguments in (("report", "study", "-o", "shared/page.html"), (*export, "csv", "-o", "shared/page.html"),
                          ("report", "study", "-o", "shared/folder/page.html"),
                          (*export, "mlflow", "-o", "shared/folder/runs"),
                          (*export, "tensorboard", "-o", "shared/folder")):
            self.refused(self.ask(*arguments), "a link that another user made")
        self.assertEqual((mine / "page.html").read_text(), "mine")
        self.assertEqual([path.name for path in mine.iterdir()], ["page.html"])
        os.lchown(shared / "page.html", os.geteuid(), -1)
        self.ask("report", "study", "-o", "shared/page.html", status=0)
        self.assertIn("<html", (mine / "page.html").read_text())


class Secrets(SharedMachine):
    def assert_no_secret(self, text, where):
        data = text if isinstance(text, bytes) else text.encode()
        page = re.search(rb'id="dsat-data">([^<]*)<', data)
        for part in (data, gzip.decompress(base64.b64decode(page.group(1))) if page else b""):
            self.assertNotIn(SECRET.encode(), part, where)

    def test_they_reach_the_trials_and_nobody_else(self):
        command = ["env", f"HF_TOKEN={SECRET}", *SCRIPT, "--deepspeed_config", "ds_config.json", "--api-key", SECRET,
                   f"--password={SECRET}", "--hub", f"https://ann:{SECRET}@hub/x"]
        self.write_config({"train_micro_batch_size_per_gpu": 1, "comet": {"enabled": False, "api_key": SECRET}})
        done = self.run_host(["--max-trials", 3, "--searcher", "random", "--no-probe", "--output-dir", "run",
                              "--no-such-option=x"], command)
        self.assert_no_secret(done.stderr, "wrong use")
        done = self.run_host(["--max-trials", 3, "--searcher", "random", "--no-probe", "--output-dir", "run"], command)
        self.assert_ok(done)
        self.assertIn(SECRET, (self.dir / "run/best_cmd.txt").read_text())
        self.assertIn(SECRET, (self.dir / "run/best_ds_config.json").read_text())
        self.assertIn(SECRET, json.loads(self.ask("best", "run", "--json", status=0).stdout)["command"])
        self.assert_no_secret((self.dir / "run/report.html").read_bytes(), "page")
        for arguments in (("show", "run"), ("show", "run", "--json"), ("show", "run", "--csv"),
                          *(("export", "run", "--format", kind) for kind in
                            ("csv", "json", "jsonl", "prometheus", "tensorboard", "mlflow")),
                          ("resume", "run", "--max-trials", 4), ("check", "run", "--json")):
            done = self.ask(*arguments, status=0, timeout=240)
            self.assert_no_secret(done.stdout + done.stderr, arguments)
        for folder in ("tensorboard", "mlruns"):
            for path in (self.dir / "run" / folder).rglob("*"):
                if path.is_file():
                    self.assert_no_secret(path.read_bytes(), path)

    def test_the_line_of_an_error_has_none(self):
        error = f"RuntimeError: 401 for https://ann:{SECRET}@hub, token={SECRET}x"
        failing = ["sh", "-c", f"echo '{error}' >&2; exit 1", "sh", "--deepspeed_config", "ds_config.json"]
        done = self.run_host(["--max-trials", 3, "--no-probe", "--output-dir", "run"], failing)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("RuntimeError: 401", done.stderr)
        self.assert_no_secret(done.stdout + done.stderr, "error")
        self.assert_no_secret((self.dir / "run/report.html").read_bytes(), "page")


class Page(SharedMachine):
    def test_the_browser_runs_its_own_script_alone(self):
        self.study()
        page = (self.dir / "study/report.html").read_text()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
        if not policy:
            self.skipTest("built without the charts")
        for kind, tag in (("script-src", "script"), ("style-src", "style")):
            rules = re.search(kind + " ([^;]*)", policy.group(1)).group(1)
            texts = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
            self.assertEqual(len(texts), 1)
            digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
            self.assertEqual(rules, f"'sha256-{digest}'", kind)


class Server(SharedMachine):
    def setUp(self):
        super().setUp()
        self.study()
        self.process = self.start_host([HOST, "serve", "study"])
        self.at = urllib.parse.urlsplit(re.search(r"http://\S+", self.process.stdout.readline()).group())

    def connect(self):
        connection = socket.create_connection((self.at.hostname, self.at.port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def answer(self, text, path="studies.json"):
        """The whole answer to a request that ends with this text."""
        connection = self.connect()
        connection.sendall(f"GET {self.at.path}{path} HTTP/1.1\r\n".encode() + text)
        whole = b""
        while part := connection.recv(1 << 16):
            whole += part
        return whole

    def host(self):
        return f"Host: {self.at.hostname}:{self.at.port}\r\n".encode()

    def memory(self):
        status = (b"" if self.process.poll() is not None else b"x") and open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status).group(1)) << 10

    def test_headers_without_an_end_are_cut_off(self):
        for begin, line, statuses in ((self.host(), b"X: " + b"y" * 90 + b"\r\n", (b"431",)),
                                      (b"X: ", b"y" * 100, (b"431",)), (self.host(), b"\r" * 100, (b"431", b"400"))):
            connection = self.connect()
            connection.sendall(b"GET / HTTP/1.1\r\n" + begin)
            sent = 0
            try:
                while sent < 64 << 20:
                    sent += connection.send(line * 100)
            except OSError:
                pass
            self.assertLess(sent, 16 << 20, "it is closed")
        self.assertIn(b" 431 ", self.answer(self.host() + b"X: y\r\n" * 2000 + b"\r\n")[:20])
        self.assertIn(b" 414 ", self.answer(b"", path="x" * 6000)[:20])
        self.assertLess(self.memory(), 64 << 20)

    def test_ranges_are_ignored_and_what_is_ambiguous_is_refused(self):
        close = b"Connection: close\r\n\r\n"
        ranges = b"Range: bytes=" + b",".join(b"%d-%d" % (i, i + 1) for i in range(500)) + b"\r\n"
        whole = self.answer(self.host() + ranges + close)
        self.assertEqual(whole.partition(b"\r\n")[0], b"HTTP/1.1 200 OK")
        self.assertEqual(json.loads(whole.partition(b"\r\n\r\n")[2])[0]["started"], 3)
        for twice in (self.host() * 2, self.host() + b"Host: evil\r\n",
                      self.host() + b"Origin: null\r\nOrigin: null\r\n"):
            self.assertIn(b" 400 ", self.answer(twice + close)[:20], twice)
        self.assertIn(b" 400 ", self.answer(self.host() + b"Content-Length: 3\r\n" + close)[:20])
        two = self.answer(self.host() + b"\r\n" + f"HEAD {self.at.path} HTTP/1.1\r\n".encode() + self.host() + close)
        self.assertEqual(two.count(b"HTTP/1.1 200 OK"), 2, "one after the other")

    def test_slow_clients_keep_nobody_out_and_do_not_delay_the_end(self):
        for _ in range(200):
            self.connect().sendall(b"GET / HT")
        whole = self.answer(self.host() + b"Connection: close\r\n\r\n")
        self.assertTrue(whole.startswith(b"HTTP/1.1 200 OK"), whole[:40])
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        self.assertEqual(self.process.returncode, 0)

    def test_a_journal_that_becomes_a_pipe_is_one_line_and_delays_no_end(self):
        (self.dir / "study/dsat.db").unlink()
        os.mkfifo(self.dir / "study/dsat.db")
        end = time.monotonic() + 30
        while b" 503 " not in self.answer(self.host() + b"Connection: close\r\n\r\n", path="study/0.json")[:20]:
            self.assertLess(time.monotonic(), end)
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=30)
        self.assertEqual((self.process.returncode, len(errors.strip().splitlines())), (0, 1), errors)


class EndlessAnswer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b'{"x": "' + b"y" * 65536)
                self.server.sent += 65536
        except OSError:
            pass

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


class Bounds(SharedMachine):
    def test_an_answer_of_mlflow_has_an_end(self):
        self.study()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EndlessAnswer)
        server.sent = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        uri = f"http://ann:{SECRET}@127.0.0.1:{server.server_port}"
        done = self.ask("export", "study", "--format", "mlflow", "--mlflow-uri", uri.replace(f"ann:{SECRET}@", ""))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("longer than 4 MB", done.stderr)
        self.assertLess(server.sent, 64 << 20)
        self.assertNotIn(SECRET, self.ask("export", "study", "--format", "mlflow", "--mlflow-uri", uri).stderr)

    def test_a_log_without_an_end_ends_its_trial(self):
        endless = ["sh", "-c", 'truncate -s 3000000000 "$DSAT_TRIAL_DIR/stderr.log"; sleep 600', "sh",
                   "--deepspeed_config", "ds_config.json"]
        done = self.run_host(["--max-trials", 1, "--no-probe", "--output-dir", "run"], endless)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("printed 3.00 GB", self.show("run")["trials"][0]["reason"])

    def test_a_trial_that_writes_over_the_journal_is_noticed_at_the_end(self):
        wrecking = ["sh", "-c", 'dd if=/dev/urandom of="$DSAT_TRIAL_DIR/../../dsat.db" bs=4096 seek=1 count=8 '
                    'conv=notrunc 2>/dev/null; exec "$@"', "sh", *SCRIPT, "--deepspeed_config", "ds_config.json"]
        done = self.run_host(["--max-trials", 2, "--searcher", "random", "--no-probe", "--output-dir", "run"], wrecking)
        self.assertIn("damaged", done.stderr)

    def test_the_page_leaves_the_journal_its_space(self):
        small = self.dir / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=900k,mode=700", "tmpfs", small],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", small], check=False)
        done = self.study("small/study")
        self.assertIn("no report.html", done.stderr)
        self.assertFalse((small / "study/report.html").exists())
        self.ask("resume", "small/study", "--max-trials", 6, status=0)

    def test_a_disk_that_is_full_at_the_start_advises_no_resume(self):
        def fill():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        done = self.ask("--runner", "sim", "--sim", SIM, "--output-dir", "run", preexec_fn=fill, restore_signals=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("free space", done.stderr)
        self.assertNotIn("resume", done.stderr)
        self.study("run")
