/** The page of a run, as somebody uses it who has to find out what went wrong. */
import { drive } from "./harness.mjs";
import { panelOf, runs } from "./run-parts.mjs";

await drive("run", async ({ page, open, check, sees, axe, shot }) => {
  // what went wrong
  await open(`/runs/${runs.failed}`);
  const why = page.getByTestId("why");
  await sees("the page says why", why.getByText(/CardDeclinedError/));
  await sees("the graph is drawn", page.getByTestId("graph").getByText("charged"));
  await sees("the rows are there", page.getByRole("row").filter({ hasText: "foreach customer" }));
  await why.getByRole("button", { name: "1/1/charged" }).click();
  const panel = panelOf(page);
  await sees("the panel shows the error", panel.getByText(/limit exceeded/));
  check("the step is in the address", page.url().includes("step="));
  await axe("the panel");
  await shot("run-failed");
  for (const tab of ["Summary", "Output", "Raw"]) {
    await panel.getByRole("tab", { name: tab }).click();
    await axe(`the tab ${tab} of the panel`);
  }
  await panel.getByRole("tab", { name: "Input" }).click();
  await sees("the input is shown", panel.getByText("globex-1"));
  await panel.getByRole("tab", { name: "Logs" }).click();
  await sees("the log of the step is shown", panel.getByText("the bank said no to globex-1").first());
  await page.reload();
  await sees("a link to a step opens it", panelOf(page).getByText("the bank said no to globex-1").first());

  // keys
  await page.keyboard.press("Escape");
  await panelOf(page).waitFor({ state: "detached" });
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await sees("Enter opens the panel of the row", panelOf(page));
  await page.keyboard.press("f");
  await sees("f goes to a failure", panelOf(page).getByText(/charged/).first());
  await page.keyboard.press("Escape");
  await page.keyboard.press("l");
  await sees("l opens the log", page.getByRole("tab", { name: "Logs", selected: true }));
  await page.keyboard.press("g");
  await sees("g opens the graph", page.getByTestId("graph"));

  // filters
  await page.getByRole("button", { name: /^Dead letter/ }).click();
  await sees("failures are listed with their paths", page.getByRole("row").filter({ hasText: "1/7/charged" }));
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByTestId("graph").getByText("told", { exact: true }).click();
  await sees("a statement filters the rows", page.getByRole("row").filter({ hasText: "1/3/told" }));
  check(
    "and only that",
    (await page.getByRole("row").filter({ hasText: "charged" }).count()) ===
      (await page.getByRole("row").filter({ hasText: /because 1\/\d+\/charged/ }).count()),
  );
  check("and is in the address", page.url().includes("statement="), page.url());
  const statement = page.getByLabel("Statement", { exact: true });
  await statement.selectOption({ label: "foreach customer" });
  await sees("a foreach has its iterations", page.getByRole("row").filter({ hasText: /^1\/11/ }));
  check("and nothing else", (await page.getByRole("row").filter({ hasText: "told" }).count()) === 0);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByRole("button", { name: "Table" }).click();
  await sees("the graph is a table too", page.getByRole("table").getByText("foreach customer"));
  await axe("the table of the graph");

  // how long it took, and what for
  await open(`/runs/${runs.failed}?tab=timeline&state=dead_letter`);
  const bar = page.getByRole("gridcell", { name: /^earlier attempts .*, failed attempt/ });
  await sees("a bar tells attempts apart from the last", bar);
  await open(`/runs/${runs.waits}?tab=timeline`);
  await sees("what nobody serves is queued", page.getByRole("gridcell", { name: /^queued / }));
  await sees("what a person has to do waits", page.getByRole("gridcell", { name: /^waiting / }));
  await axe("the timeline of what waits");

  // every tab
  const settled = {
    overview: "foreach customer",
    timeline: "foreach customer",
    steps: "1/10/",
    events: "The run has failed",
    logs: "the bank said no",
    agents: "No agent has worked",
    io: "2026-10",
    source: "workflow MonthlyClose",
  };
  for (const tab of ["overview", "timeline", "steps", "events", "logs", "agents", "io", "source"]) {
    await open(`/runs/${runs.failed}?tab=${tab}`);
    await page.getByText(settled[tab]).locator("visible=true").first().waitFor();
    await axe(`the tab ${tab}`);
    await shot(`run-${tab}`);
  }
  await open(`/runs/${runs.turn}?tab=agents`);
  await sees("a transcript is shown", page.getByText("Tool call 1"));
  await sees("with what each request used", page.getByRole("table").getByText("Total"));
  await axe("the transcript");
});
