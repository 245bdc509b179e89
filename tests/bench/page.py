"""Measures a page that `chronolet replay --html` has written, in a real browser.

Input: the page (`--page FILE`). Output: how long it takes to open, its memory, and the time of a frame while lanes and
events are scrolled, the slider is moved and the time is zoomed. A frame's time is what the page's scripts take for it;
the interval between frames also has the browser's own work, which an emulated screen does without a graphics card.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.figures import Figure
from tests.support.browser.chromium import Browser, browser

OPEN_SECONDS = 3.0
FRAME_MILLISECONDS = 16.7
_ROUNDS = 5
_FRAMES = 120

_FRAMES_OF = """(async () => {{
  const {{ state }} = page;
  const scripts = [], intervals = [];
  const render = state.render.bind(state);
  let spent = 0;
  state.render = () => {{ const begun = performance.now(); render(); spent += performance.now() - begun; }};
  let last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < {frames}; frame++) {{
    spent = 0;
    const begun = performance.now();
    ({action})(state, frame / {frames});
    spent += performance.now() - begun;
    const now = await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done));
    scripts.push(spent);
    intervals.push(now - last);
    last = now;
  }}
  state.render = render;
  return {{ scripts, intervals }};
}})()"""

_ACTIONS = {
    "scroll the lanes": "() => document.getElementById('lanes').scrollTop += 40",
    "scroll the events": "() => document.getElementById('entries').scrollTop += 60",
    "jump in the events": "(state, share) => { const list = document.getElementById('entries');"
    "list.scrollTop = share * list.scrollHeight }",
    "move the slider": "(state, share) =>"
    " state.setMoment(state.model.momentOf(state.window.first + share * (state.window.last - state.window.first)))",
    "zoom": "(state) => { state.window.zoom(1.05, (state.window.from + state.window.to) / 2); state.changed() }",
}


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Return the figures of the page that `--page` names."""
    if options.page is None:
        raise SystemExit("page: expected --page FILE, a page that `chronolet replay --html FILE` has written")
    file: Path = options.page.resolve()
    megabytes = file.stat().st_size / 1e6
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as chromium:
        chromium.size(1200, 800)
        opened = [_opened(chromium, file) for _ in range(1 if options.quick else _ROUNDS)]
        count = chromium.run("page.state.model.count")
        memory = chromium.memory_bytes() / 1e6
        found = [
            Figure(name=f"open {count:,} events", ours=_median(opened, 0), unit="s", goal=OPEN_SECONDS),
            Figure(name="until the texts are read too", ours=_median(opened, 1), unit="s", goal=OPEN_SECONDS),
            Figure(name="size of the page", ours=megabytes, unit="MB"),
            Figure(name="memory of the page's process", ours=memory, unit="MB"),
        ]
        chromium.run("document.getElementById('expand-all').click()")
        for name, action in _ACTIONS.items():
            tab = "tab-entries" if "events" in name else "tab-state"
            chromium.run(f"[{tab!r}, 'zoom-all', 'first'].forEach((id) => document.getElementById(id).click())")
            chromium.run("document.getElementById('lanes').scrollTop = 0")
            chromium.settle()
            found += _frames(name, chromium.run(_FRAMES_OF.format(frames=_FRAMES, action=action)))
        found += [_search(chromium, "names", in_texts=False), _search(chromium, "texts", in_texts=True)]
    return found


def _opened(chromium: Browser, file: Path) -> tuple[float, float]:
    """Open the page in a new document. Return the seconds until it is drawn and can be used, and until the browser has
    read all of it.
    """
    chromium.open("about:blank")
    chromium.open(file.as_uri())
    chromium.run("page.ready")
    usable, whole = chromium.run("[page.milliseconds, performance.getEntriesByType('navigation')[0].loadEventStart]")
    return usable / 1_000, whole / 1_000


def _median(opened: Sequence[tuple[float, float]], which: int) -> float:
    return statistics.median(one[which] for one in opened)


def _frames(name: str, measured: dict[str, list[float]]) -> list[Figure]:
    scripts, intervals = sorted(measured["scripts"]), sorted(measured["intervals"])
    late = scripts[int(len(scripts) * 0.95)]
    return [
        Figure(
            name=f"{name}: scripts of a frame, 95th percentile",
            ours=late,
            unit="ms",
            goal=FRAME_MILLISECONDS,
            note=f"median {statistics.median(scripts):.1f} ms; interval {statistics.median(intervals):.1f} ms",
        )
    ]


def _search(chromium: Browser, what: str, *, in_texts: bool) -> Figure:
    """Search for the name of the first pod."""
    name = chromium.run("page.state.model.tables.find((one) => one.name === 'pod').objects[0]").rpartition("/")[2]
    wanted = json.dumps({"query": name, "inTexts": in_texts, "level": "all", "family": []})
    milliseconds = chromium.run(
        "(async () => { const begun = performance.now();"
        f"await page.state.search.start({wanted}, () => {{}}); return performance.now() - begun }})()"
    )
    return Figure(name=f"search {what}", ours=milliseconds, unit="ms")
