/** The pictures of the documentation: each page with something on it, once it has all that it shows. */
import { drive, values } from "./harness.mjs";
import { panelOf, runs } from "./run-parts.mjs";

/** Name, address, and what is there when the page is. */
const PAGES = [
  ["home", "/", (page) => page.getByRole("heading", { name: "Recent runs" })],
  ["runs", "/runs", (page) => page.locator("tbody tr[data-row]")],
  ["run", `/runs/${runs.large}`, (page) => page.getByTestId("graph").getByText("charged")],
  [
    "statement",
    `/runs/${runs.large}?tab=steps&statement=billing.MonthlyClose%2F1%2Fcharged&state=dead_letter`,
    (page) => page.getByText(/globex-1 /),
  ],
  ["timeline", `/runs/${runs.failed}?tab=timeline&facet=billing.Charge`, (page) => page.getByText("1/9/")],
  ["hello", `/runs/${runs.hello}`, (page) => page.getByTestId("graph").getByText("counted")],
  ["bulk", "/bulk", (page) => page.getByText("shop.Delivery")],
  ["schedules", "/schedules", (page) => page.getByText("Europe/Berlin")],
  ["step", `/runs/${runs.failed}?step=1%2F1%2Fcharged&panel=error`, (page) => panelOf(page).getByText(/limit exceeded/)],
  ["flow", "/flows/default/billing.MonthlyClose", (page) => page.getByText("charged")],
  ["playground", "/playground", (page) => page.getByRole("tabpanel").getByText("hello")],
  ["turn", `/runs/${runs.turn}?tab=agents`, (page) => page.getByText("Tool call 1")],
  ["inbox", "/inbox", (page) => page.getByText("Approve").first()],
  ["logs", `/runs/${runs.running}?tab=logs`, (page) => page.getByText(/row \d+ of/)],
];

/** The others, for those who look at all of them. */
const MORE = [
  ["run-failed", `/runs/${runs.failed}`],
  ["run-waits", `/runs/${runs.waits}`],
  ["run-waits-timeline", `/runs/${runs.waits}?tab=timeline`],
  ["run-large-timeline", `/runs/${runs.large}?tab=timeline`],
  ["run-steps", `/runs/${runs.failed}?tab=steps`],
  ["run-events", `/runs/${runs.failed}?tab=events`],
  ["run-io", `/runs/${runs.failed}?tab=io`],
  ["run-source", `/runs/${runs.failed}?tab=source`],
  ["flows", "/flows"],
  ["flow-source", "/flows/default/billing.MonthlyClose?tab=source"],
  ["flow-facets", "/flows/default/billing.MonthlyClose?tab=facets"],
  ["agents", "/agents"],
  ["queues", "/queues"],
  ["workers", "/workers"],
  ["schedule-new", "/schedules?new=true"],
  ["new-run", "/runs?new=true&workflow=billing.MonthlyClose"],
  ["all-logs", "/logs"],
  ["cost", "/cost"],
  ["settings", "/settings"],
  ["tokens", "/settings?tab=tokens"],
  ["audit", "/settings?tab=audit"],
  ["hooks", "/settings?tab=hooks"],
  ["you", "/settings?tab=you"],
];

async function take({ page, open, shot }, pages, suffix = "") {
  for (const [name, path, there] of pages) {
    await open(path);
    if (there) await there(page).locator("visible=true").first().waitFor();
    // graphs are laid out and charts drawn after the page is there
    await page.waitForTimeout(900);
    await shot(`${name}${suffix}`);
  }
}

const look = Boolean(values.LOOK);
for (const dark of look ? [false, true] : [false]) {
  for (const width of look ? [1440, 1024] : [1280]) {
    const suffix = look ? `-${width}${dark ? "-dark" : ""}` : "";
    await drive(
      `pictures${suffix}`,
      async (tools) => {
        if (!look || (width === 1440 && !dark)) {
          const two = { verb: "cancel", runs: [runs.stopped, runs.failed], reason: "not needed any more" };
          await tools.page.request.post("/api/v1/bulk", { data: two });
          const all = { verb: "pause", workflow: "shop.Delivery", labels: {}, top_only: true };
          await tools.page.request.post("/api/v1/bulk", { data: all });
        }
        await take(tools, look ? [...PAGES, ...MORE] : PAGES, suffix);
      },
      { viewport: { width, height: width === 1280 ? 800 : 900 }, dark },
    );
  }
}
