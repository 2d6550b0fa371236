/** A turn as it streams: words before their commit, and afterwards each of them once. */
import { writeFileSync } from "node:fs";
import { drive } from "./harness.mjs";

const FIRST = "I look at the books first.";
const SECOND = "They are all closed.";
const LAST = "So nothing is open.";

/** How often a text is in the transcript, at the least and at the most, from now on. */
const count = (page, text) =>
  page.evaluate((wanted) => {
    const region = document.querySelector('[aria-label="Transcript"]');
    const look = () => region.textContent.split(wanted).length - 1;
    const seen = (window.seen = { least: look(), most: look() });
    new MutationObserver(() => {
      seen.least = Math.min(seen.least, look());
      seen.most = Math.max(seen.most, look());
    }).observe(region, { childList: true, subtree: true, characterData: true });
  }, text);

await drive("streaming", async ({ page, open, check, sees, axe, shot, values }) => {
  const goOn = (gate) => writeFileSync(`${values.GATES}/${gate}`, "");
  const committed = async () => {
    const [turn] = await (await page.request.get(`/api/v1/runs/${values.RUN}/turns`)).json();
    return (await (await page.request.get(`/api/v1/turns/${turn.id}`)).json()).calls.length;
  };

  await open(`/runs/${values.RUN}?tab=agents`);
  const transcript = page.getByRole("region", { name: "Transcript", exact: true });
  const mark = transcript.getByText("streaming", { exact: true });
  await sees("what the model has said so far is shown", transcript.getByText(FIRST));
  await sees("with a mark", mark);
  await sees("that it answers is said once", transcript.getByRole("status").getByText("The model is answering."));
  check("the words are in no place that is read out as it grows", (await transcript.locator("[aria-live]").count()) === 0);
  check("nothing of it is committed", (await committed()) === 0);
  await axe("a transcript that grows");
  await shot("streaming");

  // a page that does not follow stays as it is
  await page.getByRole("button", { name: "Stop following changes" }).click();
  await mark.waitFor({ state: "detached" });
  goOn("second");
  await page.waitForTimeout(1000);
  check("a page that is paused does not grow", (await transcript.getByText(SECOND).count()) === 0);
  check("and keeps what it has", (await transcript.getByText(FIRST).count()) === 1);
  await page.getByRole("button", { name: "Follow changes again" }).click();
  await sees("and then it has everything", transcript.getByText(`${FIRST} ${SECOND}`));
  await sees("and the mark", mark);
  check("still nothing is committed", (await committed()) === 0);

  // the commit
  await count(page, FIRST);
  goOn("last");
  await sees("the turn is committed", transcript.getByText("1 request", { exact: true }));
  await sees("with its price", transcript.getByText(/10 in · 5 out/));
  await sees("and its deliverable", transcript.getByText("All is paid.").first());
  await sees("the whole answer is there", transcript.getByText(`${FIRST} ${SECOND} ${LAST}`));
  await mark.waitFor({ state: "detached" });
  const seen = await page.evaluate(() => window.seen);
  check("and was there once at all times", seen.least === 1 && seen.most === 1, seen);
  check("one tool was called", (await transcript.getByText("Tool call 1", { exact: true }).count()) === 1);
  await axe("the committed transcript");
  await shot("streamed");
});
