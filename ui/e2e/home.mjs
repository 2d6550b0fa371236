// What somebody who opens the dashboard has to know first.
import { drive } from "./harness.mjs";

await drive("home", async ({ page, check, open, sees, axe, shot }) => {
  await open("/");
  const tile = (name) => page.getByRole("main").getByRole("link", { name: new RegExp(`^${name}`) });
  await sees("failing runs are counted", tile("Failing now"));
  check("three runs fail", /Failing now\s*3/.test(await tile("Failing now").innerText()));
  check("one is asked", /Needs a person\s*1/.test(await tile("Needs a person").innerText()));
  check("a worker is there", /Workers\s*1/.test(await tile("Workers").innerText()));
  await sees("the error is shown", page.getByText("the card was declined").first());
  await sees("facets without a worker are named", page.getByText("shop.Fax").first());
  await sees("and what helps", page.getByText("afl worker --handlers handlers.py"));
  await sees("a stuck run says why", page.getByText(/No live worker serves/).first());
  await sees("the inbox has a badge", page.getByRole("link", { name: /Inbox.*1 waiting for a person/ }));
  await sees("the page is live", page.getByText("Live", { exact: true }));
  await axe("home");
  await shot("home");

  const answer = await page.request.post("/api/v1/runs", {
    data: { workflow: "shop.Order", inputs: { item: "lamp" } },
  });
  const { run } = await answer.json();
  await sees("a new run appears by itself", page.getByTitle(`shop.Order ${run.id}`));

  await tile("Failing now").click();
  await page.waitForURL(/\/runs\?state=failed/);
  check("a tile opens its list", page.url().includes("state=failed"));
});
