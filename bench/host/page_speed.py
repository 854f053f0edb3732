#!/usr/bin/env python3
"""How soon a page is there in Chromium, and how it takes sorting and filtering.

    bench/host/page_speed.py PAGE... [--renice N]

PAGE is a report.html; a large one comes from `dsat-host --runner sim`. Prints, in milliseconds: from the start of the
navigation until the figures are there and until the charts in view are drawn (median and worst of five), all charts one
after another, and what a click costs. --renice: as in serve_cost.py.
"""
import argparse
import pathlib
import statistics
import sys

from serve_cost import ROOT, renice

sys.path.insert(0, str(ROOT / "tests/e2e"))
import browser  # pylint: disable=wrong-import-position

NOTE_READY = """new MutationObserver(() => {
  if (document.documentElement?.dataset.ready !== undefined) window.readyAt ??= performance.now();
}).observe(document, {attributes: true, childList: true, subtree: true});"""
DRAWN = """(async () => {
  const near = (f) => { const r = f.getBoundingClientRect(); return r.top < innerHeight && r.bottom > 0; };
  const open = () => [...document.querySelectorAll('figure.chart:not([hidden])')]
    .filter(near).some((f) => !f.querySelector('canvas'));
  while (open()) await new Promise(requestAnimationFrame);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now(); })()"""
ALL_CHARTS = """(async () => { const begin = performance.now();
  for (const f of document.querySelectorAll('figure.chart:not([hidden])')) {
    f.scrollIntoView();
    while (!f.querySelector('canvas')) await new Promise(requestAnimationFrame); }
  return performance.now() - begin; })()"""
TYPE = ("const input = document.querySelector('#filter-words'); "
        "input.value = '{}'; input.dispatchEvent(new Event('input'))")
CLICKS = {"sort": "document.querySelector('table.trials thead th:nth-child(6) button').click()",
          "filter, the first time": TYPE.format("micro"), "filter": TYPE.format("micro batch 7")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="+", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--renice", type=int, default=0)
    options = parser.parse_args()
    for page in options.pages:
        tab = browser.Browser()
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=NOTE_READY)
        tab.open(page.resolve().as_uri())
        if options.renice:
            renice(options.renice)
        ready, drawn = [], []
        for _ in range(5):
            tab.open(page.resolve().as_uri())
            drawn.append(tab.run(DRAWN))
            ready.append(tab.run("window.readyAt"))
        trials = tab.run("document.documentElement.dataset.ready")
        print(f"{page}: {page.stat().st_size / 1e6:.2f} MB, {trials} trials: "
              f"figures {statistics.median(ready):.0f} ({max(ready):.0f}), charts in view "
              f"{statistics.median(drawn):.0f} ({max(drawn):.0f}), all charts {tab.run(ALL_CHARTS):.0f}")
        for name, click in CLICKS.items():
            took = tab.run(f"(() => {{ const begin = performance.now(); {click}; document.body.offsetHeight; "
                           "return performance.now() - begin; })()")
            print(f"  {name} {took:.0f}")
        if tab.problems:
            raise SystemExit(f"{page}: {tab.problems}")
        tab.close()


if __name__ == "__main__":
    main()
