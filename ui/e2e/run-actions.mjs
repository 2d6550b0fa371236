/** What people do to runs and steps: each says before what will happen. */
import { drive } from "./harness.mjs";
import { confirm, dialogOf, openNewRun, panelOf, runs } from "./run-parts.mjs";

await drive("run actions", async ({ page, open, check, sees, axe, shot }) => {
  // retry a step
  await open(`/runs/${runs.failed}?step=1/1/charged`);
  await panelOf(page).getByRole("button", { name: "Retry" }).click();
  await page.getByTestId("consequence").waitFor();
  await axe("the dialog of an action");
  await shot("run-retry");
  const retried = await confirm(page, "Retry");
  check("the dialog says what a retry does", retried.length > 20, retried);
  await openNewRun(page);
  check("the retry is another run", !page.url().includes(runs.failed));
  await sees("it says what it was made from", page.getByLabel("Lineage").getByText("made from"));

  // fork with edited input
  await open(`/runs/${runs.failed}`);
  await page.getByRole("button", { name: "Rerun" }).click();
  await page.getByRole("menuitem", { name: "Fork with edited input" }).click();
  await dialogOf(page).getByLabel("cents").fill("500");
  await shot("run-fork");
  const forked = await confirm(page, "Fork");
  check("the dialog says what a fork does", forked.length > 20, forked);
  await openNewRun(page);
  await sees("the fork completes", page.locator('header [data-state-word="completed"]'));

  // continue with a result
  await open(`/runs/${runs.waits}?step=0/faxed`);
  await panelOf(page).getByRole("button", { name: "Continue with a result" }).click();
  await dialogOf(page).getByLabel("pages").fill("3");
  await confirm(page, "Continue");
  await sees("the step is done with the result", panelOf(page).locator('[data-state-word="done"]'));

  // cancel
  await open(`/runs/${runs.stopped}`);
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  const canceled = await confirm(page, "Cancel the run");
  check("the dialog says what canceling does", canceled.length > 20, canceled);
  await sees("the run is canceled", page.locator('header [data-state-word="canceled"]'));
});
