"""The page of a study in a real browser: every kind of study, sorting, filtering, dark, phone, keyboard."""
import collections
import json
import re
import signal
import subprocess
import sys
import time
import unittest

import browser
from support import HOST, PROJECT, HostTest

SIM = PROJECT / "examples/sim"
ALL_CHARTS = "[...document.querySelectorAll('figure.chart:not([hidden])')].map((f) => f.id)"


@unittest.skipUnless(browser.PROGRAM, "no Chromium: scripts/install-deps page installs it")
class PageTest(HostTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def simulate(self, scenario, *options, into="study"):
        result = self.run_host(["--runner", "sim", "--sim", SIM / f"{scenario}.json", "--output-dir", into,
                                "--quiet", *options], [])
        self.assertIn(result.returncode, (0, 1), result.stderr)
        self.require_charts(into)
        return self.dir / into / "report.html"

    def require_charts(self, study="study"):
        if "dsat-data" not in (self.dir / study / "report.html").read_text():
            self.skipTest("built without the charts")

    def open(self, page, **how):
        self.browser.open(page.as_uri(), **how)

    def rows(self):
        return self.browser.run("[...document.querySelectorAll('table.trials tbody tr:not(.details)')]"
                                ".map((r) => Number(r.id.slice(6)))")

    def text(self, selector="main"):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def draw_all(self):
        """Brings each chart into view and gives those that were drawn."""
        return self.browser.run("""(async () => { const drawn = [];
            for (const f of document.querySelectorAll('figure.chart:not([hidden])')) {
              f.scrollIntoView();
              for (let i = 0; i < 100 && !f.querySelector('canvas'); ++i) await new Promise((r) => setTimeout(r, 20));
              if (f.querySelector('canvas')) drawn.push(f.id); }
            return drawn; })()""")

    def assert_sound(self):
        self.assertEqual(self.draw_all(), self.browser.run(ALL_CHARTS))
        self.assertEqual(self.browser.problems, [])
        wide = self.browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(wide, 0, "the page scrolls sideways")
        silent = self.browser.run("""[...document.querySelectorAll('figure.chart:not([hidden]) [role=img]')]
            .filter((c) => c.getAttribute('aria-label').length < 40).length""")
        self.assertEqual(silent, 0, "each chart has its words")

    def test_a_study_is_read_sorted_filtered_and_opened(self):
        page = self.simulate("8-gpus-a100-gpt2-xl", "--max-trials", 24)
        self.assertLess(page.stat().st_size, 1_500_000)
        self.assertNotIn("src=\"http", page.read_text())
        self.open(page)
        self.assert_sound()
        self.assertIn("Against your own configuration", self.text())
        self.assertIn("zero_optimization.stage", self.text())
        self.assertIn("chart-belief", self.browser.run(ALL_CHARTS))
        self.assertEqual(self.rows(), list(range(24)))

        self.browser.click("table.trials thead th:nth-child(6) button")
        best = json.loads((self.dir / "study/best_ds_metrics.json").read_text())
        order = self.browser.run("document.querySelector('table.trials th:nth-child(6)').getAttribute('aria-sort')")
        self.assertEqual(order, "descending")
        metrics = self.browser.run("[...document.querySelectorAll('table.trials tbody tr td:nth-child(6)')]"
                                   ".map((c) => c.innerText)")
        self.assertGreater(float(metrics[0].split()[0]) * 1e12, 0.95 * best["FLOPS_per_gpu"])
        self.assertEqual(metrics[-1], "–", "what has no value comes last")

        self.browser.run("document.querySelector('#filter-words').focus()")
        self.browser.type("your own configuration")
        self.browser.wait_for("document.querySelector('#trials-count').innerText.includes(' of ')")
        self.assertTrue(0 < len(self.rows()) < 24)
        self.browser.click("table.trials tbody th button")
        self.browser.wait_for("document.querySelector('tr.details') !== null")
        details = self.browser.run("document.querySelector('tr.details').textContent")
        self.assertIn("gradient_accumulation_steps", details)

        self.browser.click("section a[href^='#trial-']")
        self.browser.wait_for("document.activeElement.closest('tr.best, tr[id^=trial-]') !== null")

    def test_dark_phone_and_keyboard(self):
        self.open(self.simulate("8-gpus-a100-gpt2-xl", "--max-trials", 12),
                  width=390, height=844, phone=True, dark=True)
        self.assert_sound()
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = self.browser.run(ground)
        self.browser.click("#theme")
        self.browser.wait_for(f"{ground} !== {json.dumps(dark)}")
        self.assertEqual(self.browser.problems, [])
        self.browser.run("document.activeElement.blur()")
        seen = []
        for _ in range(40):
            self.browser.press("Tab")
            seen.append(self.browser.run(
                "document.activeElement.tagName + ' ' + document.activeElement.innerText.slice(0, 20)"))
            if seen[-1].startswith("SUMMARY"):
                break
        self.browser.press("Enter", text="\r")
        self.assertTrue(self.browser.wait_for("document.activeElement.closest('details').open"), seen)

    def test_paper_is_white_and_says_which_rows_it_has(self):
        page = self.simulate("8-gpus-a100-gpt2-xl", "--searcher", "random", "--max-trials", 60)
        self.open(page)
        self.browser.run("localStorage.clear()")  # what another test chose
        self.open(page, dark=True)
        self.assert_sound()
        ink = "getComputedStyle(document.documentElement).getPropertyValue('--text')"
        dark = self.browser.run(ink)
        self.browser.run(f"""window.seen = [];
            addEventListener('beforeprint', () => seen.push({ink}, document.querySelector('canvas').toDataURL()))""")
        on_screen = self.browser.run("document.querySelector('canvas').toDataURL()")
        self.browser.call("Page.printToPDF")
        printed, canvas = self.browser.run("window.seen")
        self.assertNotEqual(printed, dark)
        self.assertNotEqual(canvas, on_screen, "charts are drawn again in colours for paper")
        self.assertEqual(self.browser.run(ink), dark, "the screen has its own back")
        self.browser.click("#theme")
        chosen = self.browser.run(ink)
        self.assertNotEqual(chosen, dark)
        self.browser.call("Page.printToPDF")
        self.assertEqual(self.browser.run(ink), chosen, "and so has a choice between two prints")
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(self.text("nav.pages").strip(), "Rows 1 to 50 of 60")

    def test_a_browser_that_cannot_unpack_the_data_shows_the_tables(self):
        page = self.simulate("8-gpus-a100-gpt2-xl", "--max-trials", 4)
        script = self.browser.call("Page.addScriptToEvaluateOnNewDocument",
                                   source="delete window.DecompressionStream")["identifier"]
        self.addCleanup(self.browser.call, "Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        self.browser.call("Page.navigate", url=page.as_uri())
        self.browser.wait_for("document.querySelector('.notice.bad') !== null")
        self.assertIn("DecompressionStream", self.text(".notice.bad"))
        self.assertIn("The best configuration", self.text())
        self.assertEqual(self.browser.run("document.querySelectorAll('main table').length > 1"), True)

    def test_axes_of_every_kind(self):
        space = {"alloc": ["", "expandable"], "bind": ["", "--bind"],
                 "gc": {"values": [None, "--checkpointing"], "if": "stage == 2"},
                 "workers": {"range": [2, 8], "log": True}, "model.attention": ["sdpa", "flash"]}
        (self.dir / "space.json").write_text(json.dumps(space))
        self.open(self.simulate("1-gpu-gpt2-medium", "--space", "space.json", "--searcher", "random", "--max-trials",
                                20, "-z", 1, 2))
        self.assert_sound()
        best = json.loads((self.dir / "study/best_ds_config.json").read_text())
        self.assertNotIn({}, best.values(), "what is put back leaves no section")
        table = self.browser.run("document.querySelector('table:has(caption)').innerText")
        self.assertNotIn("{}", table)
        trial = next(trial for trial in self.show("study")["trials"] if trial["kind"] == "search")
        self.browser.run(f"document.querySelector('#trial-{trial['id']} th button').click()")
        self.browser.wait_for("document.querySelector('tr.details') !== null")
        details = self.browser.run("document.querySelector('tr.details').innerText")
        for key in ("alloc", "bind", "gc", "workers", "model.attention"):
            name, _, member = key.partition(".")
            value = trial["config"][name][member] if member else trial["config"][name]
            text = {None: "not set", "": '""'}.get(value, value)
            self.assertIn("%s\t%s\n" % (key, text), details)

    def test_pages_of_searchers_with_lineages(self):
        # A rung of one trial: what its search left open is gone on with on the next rung.
        self.open(self.simulate("8-gpus-a100-gpt2-xl", "--searcher", "asha", "--min-binary-search-trials", 1,
                                "--max-trials", 60))
        self.assert_sound()
        notes = "".join(trial["note"] for trial in self.show("study")["trials"])
        lineages = collections.Counter(re.findall(r"lineage (\d+)", notes))
        promoted = sum(trials > 1 for trials in lineages.values())
        self.assertGreater(promoted, 0)
        self.assertIn(f"{len(lineages)} reached rung 0, {promoted} reached rung 1", self.text("#chart-ladder"))

    def test_intervals_of_a_binary_search(self):
        self.open(self.simulate("1-gpu-gpt2-medium", "--searcher", "binary", "--exact", "--max-trials", 40))
        self.assert_sound()
        searched = [trial for trial in self.show("study")["trials"]
                    if re.search(r" \[\d+, \d+\] of stage", trial["note"])]
        self.assertGreater(len(searched), 0)
        self.assertIn(f"{len(searched)} trials of", self.text("#chart-intervals"))
        self.browser.click("#chart-intervals summary")
        rows = "document.querySelectorAll('#chart-intervals tbody tr').length"
        self.assertEqual(self.browser.wait_for(rows), len(searched))

    def test_a_study_of_many_devices_and_trials(self):
        self.open(self.simulate("1024-gpus-a100-gpt-30b", "--searcher", "random", "--max-trials", 200))
        self.assertLess((self.dir / "study/report.html").stat().st_size, 1_500_000)
        self.assert_sound()
        self.assertIn("1024 slots", self.text("#chart-timeline"))
        rows = self.rows()
        self.assertEqual(len(rows), 50)
        self.assertIn("Rows 1 to 50 of 200", self.text("nav.pages"))
        self.browser.click("nav.pages button:nth-of-type(3)")
        self.assertEqual(self.rows()[0], rows[-1] + 1)

    def test_one_trial(self):
        self.open(self.simulate("8-gpus-a100-gpt2-xl", "--max-trials", 1))
        self.assert_sound()
        self.assertEqual(self.rows(), [0])
        self.assertIn("measured the metric", self.text())

    def test_all_that_was_measured_lies_above_the_memory_margin(self):
        self.open(self.simulate("1-gpu-gpt2-medium", "--memory-margin", 0.9, "--max-trials", 4))
        self.assert_sound()
        self.assertEqual(self.text().count("No measured configuration is valid as the best"), 2)
        self.assertNotIn("no trial", self.text().lower())

    def test_a_metric_whose_smallest_value_is_the_best(self):
        self.open(self.simulate("8-gpus-a100-gpt2-xl", "--metric", "latency", "--max-trials", 12))
        self.assert_sound()
        self.assertIn("the smallest", self.text())
        milliseconds = json.loads((self.dir / "study/best_ds_metrics.json").read_text())["latency"] / 1e3
        shown = re.search(r"Best: Time of a step\s+([\d.]+) ms", self.text("section[aria-label=Result]"))
        self.assertAlmostEqual(float(shown.group(1)), milliseconds, delta=0.01 * milliseconds)

    def test_studies_of_two_metrics_side_by_side(self):
        self.simulate("8-gpus-a100-gpt2-xl", "--max-trials", 6, into="flops")
        self.simulate("8-gpus-a100-gpt2-xl", "--max-trials", 6, "--metric", "latency", into="latency")
        server = self.start_host([HOST, "serve", "flops", "latency"])
        self.browser.open(re.search(r"http://\S+", server.stdout.readline()).group())
        self.assert_sound()
        self.assertNotIn("chart-comparison", self.browser.run(ALL_CHARTS), "two metrics have no common axis")
        self.assertIn("FLOPS_per_gpu", self.text())
        self.browser.click("#studies tbody tr:nth-child(2) button")
        self.browser.wait_for("document.querySelector('main').innerText.includes('metric latency')")
        self.assertEqual(self.browser.problems, [])

    def start_study(self, *how):
        """A study that has measured some trials and runs."""
        options = ["--output-dir", "study", "--max-trials", 500, "--searcher", "random", *how]
        process = self.start_host(self.arguments(options, self.command()))
        show = [HOST, "show", "study", "--json"]
        end = time.monotonic() + 60
        while time.monotonic() < end:
            shown = subprocess.run(show, cwd=self.dir, capture_output=True, text=True, check=False)
            trials = json.loads(shown.stdout)["trials"] if shown.returncode == 0 else []
            if sum(trial["outcome"] is not None for trial in trials) >= 5:
                return process
            self.assertIsNone(process.poll())
        self.fail("the study measures nothing")

    def report(self):
        done = subprocess.run([HOST, "report", "study"], cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.require_charts()
        return self.dir / "study/report.html"

    def test_what_a_reader_opened_stays_while_the_study_runs(self):
        self.start_study()
        self.report()
        server = self.start_host([HOST, "serve", "study"])
        self.browser.open(re.search(r"http://\S+", server.stdout.readline()).group())
        ended = self.browser.run("document.querySelector('table.trials .outcome.completed').closest('tr').id")
        self.browser.click(f"#{ended} button")
        details = f"#{ended.replace('trial', 'details')}"
        self.browser.click(f"{details} summary")
        self.browser.run(f"window.opened = document.querySelector('{details}'); "
                         f"getSelection().selectAllChildren(opened.querySelector('pre'))")
        for _ in range(2):
            count = int(self.text("#trials-count").split()[0])
            self.browser.wait_for(f"parseInt(document.querySelector('#trials-count').innerText) > {count}")
        self.assertTrue(self.browser.run(f"window.opened === document.querySelector('{details}')"))
        self.assertTrue(self.browser.run("opened.querySelector('details').open && String(getSelection()).length > 0"))
        self.assertTrue(self.browser.run("opened.contains(document.activeElement)"), "the focus stays, too")

    def test_an_interrupted_study(self):
        process = self.start_study()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)
        self.require_charts()
        self.open(self.dir / "study/report.html")
        self.assert_sound()
        self.assertEqual(self.text(".pill"), "interrupted")
        self.assertIn("resume", self.text("header"))

    def test_a_study_whose_host_was_killed(self):
        process = self.start_study()
        process.kill()
        process.communicate()
        self.open(self.report())
        self.assert_sound()
        self.assertEqual(self.text(".pill"), "interrupted")
        self.assertIn("its host was killed", self.text("header"))
        self.assertGreaterEqual(len(self.rows()), 5)

    def test_all_failed_and_text_of_a_script_stays_text(self):
        nasty = "</script><img src=x onerror=\"document.title='owned'\"><b id=injected>"
        script = f"import sys; sys.stderr.write({nasty!r} + chr(10)); sys.exit(1)"
        command = [sys.executable, "-c", script, "--deepspeed_config", "ds_config.json"]
        self.run_host(["--output-dir", "study", "--max-trials", 6, "--slots", 1], command)
        self.require_charts()
        self.open(self.dir / "study/report.html")
        self.assert_sound()
        self.assertNotIn("best_cmd.txt", self.text("#again + .code"))
        self.browser.run("document.querySelectorAll('table.trials tbody th button').forEach((b) => b.click())")
        self.browser.wait_for("document.querySelector('tr.details') !== null")
        self.assertIn("onerror", self.browser.run("document.body.innerText"), "it is shown")
        self.assertIsNone(self.browser.run("document.querySelector('#injected')"))
        self.assertNotEqual(self.browser.run("document.title"), "owned")

    def test_report_of_a_study_elsewhere_and_of_none(self):
        self.simulate("8-gpus-a100-gpt2-xl", "--max-trials", 4)
        before = sorted(f.name for f in (self.dir / "study").iterdir())
        done = subprocess.run([HOST, "report", "study", "-o", "page.html"],
                              cwd=self.dir, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(f.name for f in (self.dir / "study").iterdir()), before)
        for arguments in (["report", "none"], ["report"], ["report", "study", "-o", "no/where/page.html"]):
            done = subprocess.run([HOST, *arguments], cwd=self.dir, capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
