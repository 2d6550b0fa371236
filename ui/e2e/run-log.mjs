/** The log of a run that goes on: it follows, and leaves the reader in peace. */
import { drive } from "./harness.mjs";
import { runs } from "./run-parts.mjs";

await drive("run log", async ({ page, open, check, sees, shot }) => {
  await open(`/runs/${runs.running}?tab=logs`);
  const log = page.getByTestId("log");
  await sees("the log is there", log.getByText(/row \d+ of/).first());
  const last = () =>
    log.evaluate((box) => Math.max(...[...box.innerText.matchAll(/row (\d+) of/g)].map((one) => Number(one[1]))));
  const first = await last();
  await page.waitForFunction(
    ([number]) => {
      const text = document.querySelector('[data-testid="log"]')?.innerText ?? "";
      return [...text.matchAll(/row (\d+) of/g)].some((one) => Number(one[1]) > number);
    },
    [first],
  );
  check("it follows what is written", (await last()) > first);
  const place = () => log.evaluate((box) => box.scrollTop);
  await log.hover();
  await page.mouse.wheel(0, -900);
  const fresh = page.getByRole("button", { name: /new line/ });
  await sees("new lines are announced to who has scrolled up", fresh);
  const before = await place();
  const seen = await fresh.textContent();
  await page.waitForFunction((text) => {
    const now = [...document.querySelectorAll("button")].find((one) => /new line/.test(one.textContent ?? ""));
    return now !== undefined && now.textContent !== text;
  }, seen);
  check("and do not move the reader", (await place()) === before, [before, await place()]);
  await shot("run-log");
  await fresh.click();
  await fresh.waitFor({ state: "detached" });
  check(
    "the button goes to the end",
    await log.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 60),
  );
  await page.getByLabel("Level").selectOption("warning");
  await sees("levels filter", log.getByText(/row \d*[02468]0 of/).first());
  check("to what is as bad", (await log.getByText(/row \d*[1-9] of/).count()) === 0);
  await page.getByLabel("Level").selectOption("");
  await page.getByLabel("Find in lines").fill("row 7 of");
  await sees("text filters", log.getByText("row 7 of"));
});
