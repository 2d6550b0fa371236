/** Measures the page of large runs: one line of JSON with the medians. See `bench/ui.py`. */
import { chromium } from "playwright-core";

const BASE = process.env.BASE_URL;
const runs = JSON.parse(process.env.RUNS);
const rounds = Number(process.env.ROUNDS ?? 5);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"],
});

/** Notes when the first row of steps was drawn, by the clock of the page since its navigation. */
function watchRows() {
  const look = () => {
    if (window.firstRow === undefined && document.querySelector('[data-testid="rows"] [data-path]')) {
      requestAnimationFrame(() => (window.firstRow ??= performance.now()));
      observer.disconnect();
    }
  };
  const observer = new MutationObserver(look);
  observer.observe(document, { childList: true, subtree: true });
}

async function fresh() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.addInitScript(watchRows);
  return { context, page };
}

async function openRun(page, run) {
  await page.goto(`${BASE}/runs/${run}`);
  await page.waitForFunction(() => window.firstRow !== undefined);
  return page.evaluate(() => window.firstRow);
}

/** From the click on a row until the panel names its step. */
function openPanel(page, path) {
  return page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const named = `Step ${wanted}`;
        const there = () =>
          document.querySelector(`[data-testid="panel"][aria-label="${named}"] [role="tab"]`);
        const start = performance.now();
        const observer = new MutationObserver(() => {
          if (!there()) return;
          observer.disconnect();
          requestAnimationFrame(() => resolve(performance.now() - start));
        });
        observer.observe(document.body, { childList: true, subtree: true, attributes: true });
        document.querySelector(`[data-path="${wanted}"]`).click();
      }),
    path,
  );
}

async function heap(context, page) {
  const session = await context.newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "JSHeapUsedSize").value / 2 ** 20;
}

/** Scrolls through a part of the rows for a second; the longest time between two frames. */
function longestFrame(page) {
  return page.evaluate(
    () =>
      new Promise((resolve) => {
        const box = document.querySelector('[data-testid="rows"]');
        const from = performance.now();
        let last = from;
        let longest = 0;
        const frame = (now) => {
          longest = Math.max(longest, now - last);
          last = now;
          box.scrollTop += 120;
          if (now - from < 1000) requestAnimationFrame(frame);
          else resolve(longest);
        };
        requestAnimationFrame(frame);
      }),
  );
}

async function toTheEnd(page, path) {
  const start = Date.now();
  await page.evaluate(() => {
    const box = document.querySelector('[data-testid="rows"]');
    box.scrollTop = box.scrollHeight;
  });
  await page.locator(`[data-path="${path}"]`).waitFor();
  return Date.now() - start;
}

const found = {};
const note = (name, value) => (found[name] ??= []).push(value);

for (let round = 0; round < rounds; round++) {
  const small = await fresh();
  note("first_paint_ms_10k", await openRun(small.page, runs["10k"]));
  await small.page.locator('[data-path="1"] button').first().click();
  await small.page.locator('[data-path="1/0"]').waitFor();
  note("panel_ms", await openPanel(small.page, "1/0"));
  note("panel_ms", await openPanel(small.page, "1/3"));
  await small.context.close();

  const large = await fresh();
  note("open_ms_100k", await openRun(large.page, runs["100k"]));
  await large.page.locator('[data-path="1"] button').first().click();
  await large.page.locator('[data-path="1/0"]').waitFor();
  note("longest_frame_ms_100k", await longestFrame(large.page));
  note("scroll_end_ms_100k", await toTheEnd(large.page, "1/99999"));
  note("heap_mb", await heap(large.context, large.page));
  await large.context.close();
}
await browser.close();

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
console.log(
  JSON.stringify(
    Object.fromEntries(
      Object.entries(found).map(([name, values]) => [name, Math.round(median(values) * 10) / 10]),
    ),
  ),
);
