"""The live page in a real browser, fed by a server of the test's own that decides what comes when."""
import copy
import http.client
import http.server
import json
import re
import threading
import time
import unittest
import urllib.parse

import browser
from support import HOST, PROJECT, HostTest

SIM = PROJECT / "examples/sim/8-gpus-a100-gpt2-xl.json"

# Each canvas keeps what was drawn on it last, and how often it was drawn.
RECORDER = """(() => {
    const of = (canvas) => canvas.drawn ??= {times: 0, texts: {}, lines: []};
    const kind = CanvasRenderingContext2D.prototype;
    const before = (name, act) => { const own = kind[name];
      kind[name] = function (...given) { act(this, ...given); return own.apply(this, given); }; };
    before('clearRect', ({canvas}) => { canvas.drawn = {times: of(canvas).times + 1, texts: {}, lines: []}; });
    before('fillText', (context, text) => { of(context.canvas).texts[text] = context.fillStyle; });
    before('beginPath', (context) => { context.xs = []; });
    for (const name of ['moveTo', 'lineTo']) before(name, (context, x) => { context.xs?.push(x); });
    before('stroke', (context) => { of(context.canvas).lines.push(context.xs); });
})()"""


class Server(http.server.ThreadingHTTPServer):
    """Serves `documents` by name; the transfer of one in `breaks` breaks off once."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.documents, self.breaks = {}, set()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        name = urllib.parse.urlsplit(self.path).path[1:]
        body = self.server.documents.get(name)
        if body is None:
            return self.send_error(404)
        tag = f'"{hash(body)}"'
        known = self.headers.get("If-None-Match") == tag
        self.send_response(304 if known else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Type", "text/html; charset=utf-8" if name == "" else "application/json")
        breaks = not known and name in self.server.breaks
        self.send_header("Content-Length", str(0 if known else len(body)))
        self.end_headers()
        if breaks:
            self.server.breaks.remove(name)
        if not known:
            self.wfile.write(body[:len(body) // 2] if breaks else body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


@unittest.skipUnless(browser.PROGRAM, "no Chromium: scripts/install-deps page installs it")
class LivePageTest(HostTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.call("Page.addScriptToEvaluateOnNewDocument", source=RECORDER)

    def start(self, *names, trials=8, options=()):
        """The page, as `serve` has it, of studies that run for ever."""
        for name in names:
            done = self.run_host(["--runner", "sim", "--sim", SIM, "--max-trials", trials, "--output-dir", name,
                                  "--quiet", "--searcher", "random", *options], [])
            self.assertEqual(done.returncode, 0, done.stderr)
        process = self.start_host([HOST, "serve", *names])
        at = urllib.parse.urlsplit(re.search(r"http://\S+", process.stdout.readline()).group())
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
        self.addCleanup(connection.close)

        def get(name):
            connection.request("GET", at.path + name)
            return connection.getresponse().read()

        page = get("")
        if b"<script>" not in page:
            self.skipTest("built without the charts")
        self.list = json.loads(get("studies.json"))
        self.studies = [json.loads(get(f"study/{i}.json")) for i in range(len(names))]
        for line, study in zip(self.list, self.studies):
            line["status"] = study["study"]["status"] = "running"
        self.end_process(process)
        self.server = Server()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.server.documents[""] = page
        self.publish()

    def publish(self):
        self.server.documents["studies.json"] = json.dumps(self.list).encode()
        for i, study in enumerate(self.studies):
            self.server.documents[f"study/{i}.json"] = json.dumps(study).encode()

    def open(self, query=""):
        self.browser.open(f"http://127.0.0.1:{self.server.server_address[1]}/{query}")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def wait_for_text(self, text, selector="body"):
        self.browser.wait_for(f"document.querySelector({json.dumps(selector)}).innerText.includes({json.dumps(text)})")

    def show_elapsed(self, minutes):
        """Publishes another age of the studies and waits until the page has it."""
        for line, study in zip(self.list, self.studies):
            line["elapsed_seconds"] = study["progress"]["elapsed_seconds"] = 60 * minutes + 7
        self.publish()
        self.wait_for_text(f"{minutes} min 7 s", "section[aria-label=Result]")
        if len(self.list) > 1:
            self.wait_for_text(f"{minutes} min 7 s", "#studies")

    def at(self, selector, x=None, y=None):
        """Where a point of an element is in the window; its middle by default."""
        left, top, width, height = self.browser.run(
            f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: 'center'}});
            const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()""")
        x, y = width / 2 if x is None else x, height / 2 if y is None else y
        return left + (x if x >= 0 else width + x), top + (y if y >= 0 else height + y)

    def mouse(self, kind, at):
        button = "none" if kind == "mouseMoved" else "left"
        held = {"buttons": 1} if kind != "mouseReleased" else {}
        self.browser.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button=button, clickCount=1, **held)

    def drawn(self, chart):
        """What the canvas of a chart that is in view has: its texts with their colours, lines, how often drawn."""
        canvas = f"document.querySelector('#chart-{chart} canvas')"
        self.browser.run(f"document.querySelector('#chart-{chart}').scrollIntoView({{block: 'center'}})")
        self.browser.wait_for(f"{canvas} !== null && Object.keys({canvas}.drawn?.texts ?? {{}}).length > 0")
        return self.browser.run(f"{canvas}.drawn")

    def wait_for_drawing(self, chart, after):
        self.browser.wait_for(f"document.querySelector('#chart-{chart} canvas').drawn.times > {after}")
        return self.drawn(chart)

    def test_the_table_of_studies_stays_while_its_reader_uses_it(self):
        self.start("a", "b")
        self.open()
        times = self.drawn("comparison")["times"]
        button = "#studies tbody tr:nth-child(2) button"
        self.browser.run(f"window.second = document.querySelector('{button}'); second.focus()")
        self.show_elapsed(3)
        time.sleep(0.6)  # two more polls
        self.assertTrue(self.browser.run("document.activeElement === second && second.isConnected"))
        self.assertEqual(self.drawn("comparison")["times"], times, "the chart is as it was")
        at = self.at(button)
        self.mouse("mousePressed", at)
        self.show_elapsed(4)
        self.mouse("mouseReleased", at)
        self.browser.wait_for("second.getAttribute('aria-pressed') === 'true'")
        first = "document.querySelector('#studies tbody button').getAttribute('aria-pressed')"
        self.assertEqual(self.browser.run(first), "false")
        self.wait_for_text(self.studies[1]["study"]["dir"], "header")
        self.list[0]["error"] = "a: it went away"
        self.publish()
        self.wait_for_text("it went away", "#studies")
        self.assertTrue(self.browser.run("document.activeElement === second"))

    def test_the_chosen_study_outlasts_the_links_of_the_head(self):
        self.start("a", "b")
        self.open()
        self.browser.click("#studies tbody tr:nth-child(2) button")
        self.wait_for_text(self.studies[1]["study"]["dir"], "header")
        self.browser.click("nav a[href='#trials']")
        self.assertEqual(self.browser.run("location.search + location.hash"), "?study=1#trials")
        self.browser.run("window.before = true")
        self.browser.call("Page.reload")
        self.browser.wait_for("window.before === undefined && document.documentElement?.dataset.ready !== undefined")
        self.assertIn(self.studies[1]["study"]["dir"], self.text("header"))
        self.open("?study=rubbish")
        self.assertIn(self.studies[0]["study"]["dir"], self.text("header"))

    def test_the_best_of_each_study_by_the_trials_that_had_ended(self):
        self.start("a", "b")
        for line in self.list:
            line.update(best=141e12, started=9, ended=8, best_path=[
                {"trial": 5, "value": 100e12, "ended": 1}, {"trial": 2, "value": 120e12, "ended": 3},
                {"trial": 7, "value": 147e12, "ended": 6}])
        self.publish()
        self.open()
        drawn = self.drawn("comparison")
        self.assertIn("trials that have ended", drawn["texts"])
        lines = [xs for xs in drawn["lines"] if len(xs) > 3]
        self.assertEqual(len(lines), 2)
        for xs in lines:
            self.assertEqual(xs, sorted(xs), "a line goes forwards")
        shown = self.text("#chart-comparison .summary")
        self.assertIn("147 TFLOP/s after 6 of 8 ended trials", shown)
        self.assertNotIn("141", shown)
        self.assertIn("141 TFLOP/s", self.text("#studies tbody"))
        self.browser.click("#chart-comparison summary")
        self.browser.wait_for("document.querySelector('#chart-comparison tbody tr') !== null")
        ended = self.browser.run("[...document.querySelectorAll('#chart-comparison tbody td:nth-child(2)')]"
                                 ".map((cell) => Number(cell.innerText))")
        self.assertEqual(ended, [1, 3, 6] * 2)

    def test_the_choice_in_a_legend_outlasts_new_data(self):
        self.start("a")
        self.open()
        drawn = self.drawn("path")
        stage = next(text for text in drawn["texts"] if text.startswith("stage "))
        self.assertEqual(drawn["texts"]["best so far"], drawn["texts"][stage])
        at = self.at("#chart-path .canvas", 40, 12)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, at)
        self.mouse("mouseMoved", self.at("h1"))
        drawn = self.wait_for_drawing("path", drawn["times"])
        self.assertNotEqual(drawn["texts"]["best so far"], drawn["texts"][stage], "the click left it out")
        self.show_elapsed(5)
        times = self.drawn("path")["times"]
        self.show_elapsed(6)
        time.sleep(0.2)
        self.assertEqual(self.drawn("path")["times"], times, "another age is no other path")
        next(trial for trial in self.studies[0]["trials"] if trial["value"] is not None)["value"] *= 0.5
        self.publish()
        drawn = self.wait_for_drawing("path", times)
        self.assertNotEqual(drawn["texts"]["best so far"], drawn["texts"][stage])

    def test_what_a_reader_points_at_stays_shown_and_is_the_newest(self):
        self.start("a")
        study = self.studies[0]
        only = next(trial for trial in study["trials"] if trial["value"] is not None and not trial["model_info"])
        study["best_path"] = [{"trial": only["id"], "value": only["value"]}]
        for trial in study["trials"]:
            trial["model_info"] = trial is not only  # what has it is no point of the path
        self.publish()
        self.open()
        times = self.drawn("path")["times"]
        shown = "document.querySelector('#chart-path .tip')?.innerText ?? ''"
        width = self.browser.run("document.querySelector('#chart-path .canvas').clientWidth")
        for y in range(40, 270, 4):  # right of the axis's labels, in the middle
            self.mouse("mouseMoved", self.at("#chart-path .canvas", width / 2 + 36, y))
            if self.browser.run("document.querySelector('#chart-path .canvas > div').style.cursor") == "pointer":
                break
        self.browser.wait_for(f"({shown}).includes('Trial {only['id']}')")
        only["value"] *= 0.99  # the only point stays where it is
        only["reason"] = "another reason"
        self.publish()
        self.wait_for_drawing("path", times)
        self.browser.wait_for(f"({shown}).includes('another reason')")
        times = self.drawn("path")["times"]
        only["reason"] = "a third one"
        self.publish()
        self.wait_for_text("a third one", "#trials")
        self.mouse("mouseMoved", self.at("h1"))
        self.mouse("mouseMoved", self.at("#chart-path .canvas", width / 2 + 36, y))
        self.browser.wait_for(f"({shown}).includes('a third one')")

    def test_the_part_that_a_reader_looks_at_outlasts_new_data(self):
        self.start("a", trials=80)
        for trial in self.studies[0]["trials"]:
            trial["note"] = "binary search in [1000, 2000] of stage 1, lineage 1"
        self.publish()
        self.open()

        def first_trial():  # micro batches are larger
            return min(int(text) for text in self.drawn("intervals")["texts"] if text.isdigit() and 0 < int(text) < 80)

        self.assertLess(first_trial(), 9)
        self.mouse("mouseMoved", self.at("#chart-intervals .canvas", 68, -17))
        self.mouse("mousePressed", self.at("#chart-intervals .canvas", 68, -17))
        # One move only: the chart follows a moment later, and after several it may not have followed the last one yet.
        self.mouse("mouseMoved", self.at("#chart-intervals .canvas", 250, -17))
        self.mouse("mouseReleased", self.at("#chart-intervals .canvas", 250, -17))

        end = time.monotonic() + 30
        while first_trial() < 9 and time.monotonic() < end:
            time.sleep(0.1)
        first = first_trial()
        self.assertGreater(first, 9)
        times = self.drawn("intervals")["times"]
        self.studies[0]["trials"][-1].update(outcome="failed", value=None)
        self.publish()
        self.wait_for_drawing("intervals", times)
        self.assertAlmostEqual(first_trial(), first, delta=5)

    def test_intervals_tell_apart_how_trials_ended(self):
        self.start("a")
        study, note = self.studies[0], "binary search in [1, 9] of stage 1, lineage 1"
        ends = ["completed", "out_of_memory", "failed", "timed_out", "stopped", "lost", None, None]
        for trial, outcome in zip(study["trials"], ends):
            trial.update(outcome=outcome, note=note, value=None, place="ended" if outcome else "running")
        study["trials"][7]["place"] = "waiting"
        study["trials"][1]["note"] = note.replace("binary search", "below a failure")
        whole = copy.deepcopy(study)
        self.publish()
        self.open()
        marks = ("tried, completed", "tried, did not fit", "tried, failed")
        self.assertEqual([text in self.drawn("intervals")["texts"] for text in marks], [True, True, True])
        self.assertIn("8 trials of 1 lineage", self.text("#chart-intervals .summary"))
        for kept, shown in (([2, 6], [False, False, True]), ([4], [False, False, True]), ([1], [False, True, False]),
                            ([0, 7], [True, False, False]), ([6, 7], [False, False, False])):
            for trial, known in zip(study["trials"], whole["trials"]):
                trial["note"] = known["note"] if trial["id"] in kept else ""
            times = self.drawn("intervals")["times"]
            self.publish()
            drawn = self.wait_for_drawing("intervals", times)
            self.assertEqual([text in drawn["texts"] for text in marks], shown, kept)

    def test_a_transfer_that_breaks_off_is_asked_for_again(self):
        self.start("a")
        self.open()
        self.server.breaks.add("study/0.json")
        self.show_elapsed(8)
        self.assertEqual(self.server.breaks, set())


if __name__ == "__main__":
    unittest.main()
