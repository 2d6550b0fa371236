// The first minute: a run is green on the page, and a mistake that is saved is on it at once.
import { readFileSync, writeFileSync } from "node:fs";
import { drive } from "./harness.mjs";

const figures = {};
const start = Date.now();
await drive("minute", async ({ page, check, open, sees, values }) => {
  await open("/");
  const run = page.getByRole("row", { name: /SayHello/ });
  await run.getByText("Completed").waitFor({ timeout: 60_000 });
  figures.green = (Date.now() - start) / 1000;
  await run.getByRole("link").first().click();
  await sees("the run says that it has completed", page.getByText("Completed").first());
  await sees("its steps are there", page.getByText("greeted").first());
  const right = readFileSync(values.FLOW, "utf8");
  const saved = Date.now();
  writeFileSync(values.FLOW, right.replace("greeted.text)", "greted.text)"));
  await page.getByText("there is no step `greted`").first().waitFor();
  figures.diagnostics = (Date.now() - saved) / 1000;
  writeFileSync(values.FLOW, right);
  await page.getByText("there is no step `greted`").first().waitFor({ state: "detached" });
  check("what is mended is forgotten", true);
}, { report: figures });
