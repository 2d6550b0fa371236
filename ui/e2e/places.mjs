// What the pages around runs offer, done: flows, playground, workers, schedules, settings, inbox.
import { drive } from "./harness.mjs";

async function flows({ page, check, open, sees }) {
  await open("/flows");
  await sees("what nobody serves is named", page.getByText(/facet nobody serves/));
  await page.getByRole("link", { name: "shop.Order", exact: true }).click();
  await page.waitForURL(/flows\/default\/shop.Order/);
  await sees("the graph has its steps", page.getByText("charged").first());
  await page.getByRole("tab", { name: "Source" }).click();
  await sees("the source is there", page.getByText("A shop whose runs are in every state").first());
  await page.getByRole("tab", { name: "Facets" }).click();
  await sees("a facet without a worker says so", page.getByRole("row", { name: /shop.Fax/ }).getByText("Nobody"));
  check("the tab is in the address", page.url().includes("tab=facets"));
}

async function playground({ page, check, open, sees }) {
  await open("/playground");
  await sees("what is there compiles", page.getByText("It compiles"));
  const node = page.getByRole("tabpanel").getByText("hello").first();
  await sees("its graph is drawn", node);
  // where somebody can point at it, that is
  await node.click({ trial: true });
  const editor = page.getByRole("textbox", { name: "AFL source" });
  await editor.click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("facet Broken(x: Nothing)\n");
  await sees("a mistake is told with its code", page.getByText(/AFL\d{4}/).first());
  await sees("and counted", page.getByText(/\d errors?/).first());
  await page.keyboard.press("Control+End");
  await page.getByRole("region", { name: "Problems" }).getByRole("button").first().click();
  const line = await page.locator(".cm-activeLine").textContent();
  check("a mistake leads to its line", line.includes("Broken"));
  for (let at = 0; at < 40; at += 1) await page.keyboard.press("Control+z");
  await sees("taking it back mends it", page.getByText("It compiles"));
  await page.getByRole("tab", { name: "Try it" }).click();
  await page.getByRole("button", { name: "Run with stubs" }).click();
  await sees("it runs with stubs", page.getByRole("region", { name: "What came of it" }).getByText("Completed"));
}

async function inbox({ page, check, open, sees }) {
  await open("/inbox");
  await sees("the request says what it is about", page.getByText("4200").first());
  await page.getByRole("button", { name: "Reject…" }).click();
  check(
    "a rejection needs a reason",
    await page.getByRole("button", { name: "Reject", exact: true }).isDisabled(),
  );
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByLabel(/^ok/).first().click();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await sees("the answer is taken", page.getByText(/was answered, and the run goes on/));
  await sees("and nothing waits any more", page.getByText("Nobody waits for you"));
}

async function schedules({ page, open, sees }) {
  await open("/schedules");
  await page.getByRole("button", { name: "New schedule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("nightly");
  await dialog.getByLabel("Workflow").selectOption({ label: "shop.PackAll" });
  await dialog.getByLabel(/^Cron/).fill("0 3 * * *");
  await sees("cron is told in words", dialog.getByText("At 03:00"));
  await sees("and when it fires next", dialog.getByText(/^Next:/));
  await dialog.getByLabel("Labels of its runs").fill("no label");
  await sees("what is no label is told", dialog.getByText("Write labels as name=value."));
  await dialog.getByLabel("Labels of its runs").fill("team=books");
  await dialog.getByRole("button", { name: "Create" }).click();
  await sees("it is listed", page.getByRole("row", { name: /nightly.*team=books/ }));
  await page.getByRole("button", { name: "Pause nightly" }).click();
  await sees("it is paused", page.getByRole("row", { name: /nightly/ }).getByText("Paused"));
  await page.getByRole("button", { name: "Resume nightly" }).click();
  await sees("and goes on", page.getByRole("button", { name: "Pause nightly" }));
  await page.getByRole("button", { name: "Start nightly now" }).click();
  await sees("a run can be started now", page.getByText("Started"));
  await page.getByRole("button", { name: "Delete nightly" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await sees("it can be deleted", page.getByText("Nothing is scheduled"));
}

async function settings({ page, check, open, sees }) {
  await open("/settings");
  await sees("the database is checked", page.getByText("The database answers"));
  await page.getByRole("tab", { name: "Web hooks" }).click();
  await page.getByLabel("Name").fill("orders");
  await page.getByLabel("Workflow").fill("shop.Order");
  await page.getByRole("button", { name: "Make a web hook" }).click();
  await sees("the secret is shown once", page.getByRole("dialog").getByText(/whsec_/));
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Delete orders" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await sees("a hook can be deleted", page.getByText("No other system starts runs here."));
  await page.getByRole("tab", { name: "Tokens" }).click();
  await sees("nobody has a token yet", page.getByText("Nobody has a token."));
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("reports");
  await page.getByRole("dialog").getByRole("button", { name: "Make it" }).click();
  await sees("a token is shown once too", page.getByRole("dialog").getByText("Copy it now"));
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Revoke reports" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await sees("and can be revoked", page.getByText("Nobody has a token."));
  await page.getByRole("tab", { name: "Audit trail" }).click();
  await sees("what was done is in the audit trail", page.getByText(/POST .*hooks/).first());
  check("the tab is in the address", page.url().includes("tab=audit"));
}

async function workers({ page, open, sees }) {
  await open("/workers");
  await sees("the worker is busy", page.getByText("Busy"));
  await open("/queues");
  await sees("what nobody serves is named", page.getByText("shop.Fax").first());
}

await drive("places", async (tools) => {
  await flows(tools);
  await playground(tools);
  await workers(tools);
  await schedules(tools);
  await settings(tools);
  await inbox(tools);
});
