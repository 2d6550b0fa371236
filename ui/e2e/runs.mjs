// The list of runs: filters, columns, views, downloads, a new run, and an action on many.
import { readFileSync } from "node:fs";
import { drive } from "./harness.mjs";

const rows = (page) => page.locator("tbody tr[data-row]");

async function listAndFilter({ page, check, open, sees, axe, shot }) {
  await open("/runs");
  await rows(page).first().waitFor();
  await sees("states are counted", page.getByRole("button", { name: /^Failed\s*3$/ }));
  await axe("runs");
  await shot("runs");
  await page.getByRole("button", { name: /^Failed/ }).click();
  await page.waitForURL(/state=failed/);
  await page.getByText("3 of 3 runs listed").waitFor();
  check("only failed runs are listed", (await rows(page).count()) === 3);
  await sees("with their errors", page.getByRole("columnheader", { name: "Error" }));
  await page.getByLabel("Label, as name=value; Enter adds it").fill("env=test");
  await page.keyboard.press("Enter");
  await sees("nothing left says so", page.getByText("Nothing matches the filters"));
  await page.getByRole("button", { name: "Remove the filter label" }).click();
  await page.getByText("3 of 3 runs listed").waitFor();
  await page.goBack();
  check("the back button takes a filter back", page.url().includes("label="));
  await open("/runs?text=order-7");
  await page.getByText("1 of 1 run listed").waitFor();
  check("a link has its filter", (await page.getByRole("searchbox").inputValue()) === "order-7");
}

async function columnsAndViews({ page, check, open, sees }) {
  await open("/runs?workflow=shop.Order&state=completed");
  await rows(page).first().waitFor();
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByRole("menuitemcheckbox", { name: "Key" }).click();
  await page.keyboard.press("Escape");
  await sees("a column was added", page.getByRole("columnheader", { name: "Key" }));
  await page.reload();
  await sees("and is there after a reload", page.getByRole("columnheader", { name: "Key" }));
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Save these filters…" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Done orders");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved the view Done orders").first().waitFor();
  await open("/runs");
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Done orders" }).click();
  await page.waitForURL(/workflow=shop.Order/);
  check("a view opens its filters", page.url().includes("state=completed"));
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Remove views…" }).click();
  await page.getByRole("button", { name: "Remove the view Done orders" }).click();
  await sees("and can be removed", page.getByText("There is none."));
  await page.keyboard.press("Escape");
}

async function download({ page, check, open }) {
  await open("/runs?state=failed");
  await rows(page).first().waitFor();
  await page.getByRole("button", { name: "Download" }).click();
  const [csv] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: /CSV/ }).click(),
  ]);
  const lines = readFileSync(await csv.path(), "utf8").trim().split("\r\n");
  check("a CSV file has a head and three runs", lines.length === 4, lines.length);
  check("with the columns that are shown", lines[0].startsWith("state,workflow,id"), lines[0]);
}

async function newRun({ page, check, open, sees, axe }) {
  await open("/runs?new=true");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Workflow").selectOption({ label: "shop.Order" });
  await dialog.getByRole("button", { name: "Start" }).click();
  await sees("a needed value is asked for", dialog.getByText("A value is needed."));
  await axe("new run");
  await dialog.getByLabel("item").fill("sofa");
  await dialog.getByText("Labels, key and deadline").click();
  await dialog.getByLabel("Labels").fill("from=browser");
  await dialog.getByLabel("Deadline").fill("soon");
  await dialog.getByRole("button", { name: "Start" }).click();
  await sees("what the server refuses is told", dialog.getByText(/'soon' is not a duration/));
  await dialog.getByLabel("Deadline").fill("");
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
  const id = page.url().match(/[0-9a-f-]{36}/)[0];
  const run = await (await page.request.get(`/api/v1/runs/${id}`)).json();
  check("the run has its inputs", run.inputs.item === "sofa", run.inputs);
  check("and its labels", run.labels.from === "browser", run.labels);
  await open("/runs?new=true&workflow=shop.Report");
  await dialog.getByLabel("text").fill("x");
  await dialog.getByRole("button", { name: "Start" }).click();
  await sees("what may keep it back is told", page.getByText("It may not get on:"));
  await dialog.getByRole("button", { name: "Close" }).last().click();
}

async function bulkCancel({ page, check, open, sees, axe, shot }) {
  for (const id of ["b1", "b2", "b3"]) {
    await page.request.post("/api/v1/runs", {
      data: { workflow: "shop.Delivery", inputs: { id }, labels: { batch: "bulk" } },
    });
  }
  await open("/runs?label=batch%3Dbulk");
  await page.getByText("3 of 3 runs listed").waitFor();
  await page.getByLabel("Select all listed runs").click();
  await sees("the selection is counted", page.getByText("3 runs selected"));
  await page.getByRole("button", { name: "Cancel…" }).click();
  const dialog = page.getByRole("dialog");
  await sees("a preview says what will happen", dialog.getByText(/Cancels 3 runs/));
  check("with the runs", (await dialog.getByText("shop.Delivery").count()) === 3);
  await axe("bulk preview");
  await shot("bulk");
  await dialog.getByLabel("Reason").fill("not needed");
  await dialog.getByRole("button", { name: "Cancel 3 runs" }).click();
  await page.waitForURL(/\/bulk\//);
  await sees("the job tells how it ended", page.getByText("3 runs changed"));
  await axe("bulk job");
  await shot("job");
  check("and names the runs", (await page.getByRole("list", { name: "Runs that were chosen" }).getByRole("link").count()) === 3);
  await open("/runs?label=batch%3Dbulk&state=canceled");
  await sees("the runs are canceled", page.getByText("3 of 3 runs listed"));
}

/** From the job that was just done to the list of all. */
async function jobs({ page, check, sees, axe, shot }) {
  await page.getByRole("link", { name: "Bulk actions" }).click();
  await page.getByRole("heading", { name: "Bulk actions" }).waitFor();
  const first = page.getByRole("row").nth(1);
  await sees("the newest action is the first", first.getByText("batch=many"));
  await sees("with how far it is", first.getByText("105 of 105"));
  await sees("one that named its runs says how many", page.getByText("3 runs chosen one by one"));
  await sees("and why", page.getByText("not needed"));
  await axe("bulk actions");
  await shot("jobs");
  await first.getByRole("link", { name: "batch=many" }).click();
  await sees("its runs are listed", page.getByText("100 of 105 runs listed"));
  await page.getByRole("link", { name: "Bulk actions" }).click();
  await page.getByRole("link", { name: "Cancel runs" }).first().click();
  await sees("each has a page", page.getByText("105 runs changed"));
  check("in the address", /\/bulk\/[0-9a-f-]+/.test(page.url()), page.url());
}

/** More than one page of them: the rest is read on the way down, and an action reaches all. */
async function manyRuns({ page, check, open, sees, axe, shot }) {
  const one = (id) =>
    page.request.post("/api/v1/runs", {
      data: { workflow: "shop.Delivery", inputs: { id: `m${id}` }, labels: { batch: "many" } },
    });
  for (let at = 0; at < 105; at += 15) {
    await Promise.all(Array.from({ length: 15 }, (_, each) => one(at + each)));
  }
  await open("/runs?label=batch%3Dmany");
  await page.getByText("100 of 105 runs listed").waitFor();
  check("not every row is in the page", (await rows(page).count()) < 60, await rows(page).count());
  await page.getByLabel("Select all listed runs").click();
  await page.getByRole("button", { name: "Select all 105 that match" }).click();
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel 105 runs" }).click();
  await sees("an action reaches all that match", page.getByText("105 runs changed"));
  await jobs({ page, check, sees, axe, shot });
  await open("/runs?label=batch%3Dmany");
  await page.getByText("100 of 105 runs listed").waitFor();
  await page.getByRole("region", { name: "Runs", exact: true }).evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await sees("the rest is read on the way down", page.getByText("105 of 105 runs listed"));
}

async function stretch({ page, check, open, sees }) {
  await open("/runs?workflow=shop.Order&state=completed");
  await rows(page).first().waitFor();
  const first = rows(page).nth(0).getByRole("checkbox");
  await first.click();
  await rows(page).nth(4).getByRole("checkbox").click({ modifiers: ["Shift"] });
  await sees("Shift selects a stretch", page.getByText("5 runs selected"));
  await page.keyboard.press("Escape");
  check("Escape clears", (await page.getByText("5 runs selected").count()) === 0);
}

await drive("runs", async (tools) => {
  await listAndFilter(tools);
  await columnsAndViews(tools);
  await download(tools);
  await newRun(tools);
  await bulkCancel(tools);
  await manyRuns(tools);
  await stretch(tools);
}, { allowed: ["422"] });
