// A worker is killed under an open page, another takes over, and the page is cut off while the run ends.
// Says by words on its output how far it is, so that whoever kills knows when.
import { drive } from "./harness.mjs";

const say = (word) => console.log(word);

await drive(
  "losses",
  async ({ page, check, open, sees, values }) => {
    await open(`/runs/${values.RUN}?step=0%2Fheld`);
    const panel = page.getByTestId("panel");
    await sees("the step runs", panel.getByText("Running").first());
    say("running");
    await panel.getByText(/lost/i).first().waitFor({ timeout: 60_000 });
    check("the page says that the worker was lost", true);
    say("lost");
    await panel.getByText("2 attempts").waitFor({ timeout: 60_000 });
    const attempts = panel.getByRole("listitem").filter({ hasText: /lost|running/ });
    check("both attempts are shown", (await attempts.count()) >= 2, await panel.textContent());
    say("taken over");
    await page.getByText(/reconnecting/i).first().waitFor();
    check("the page says that it is cut off", true);
    say("cut off");
    check("it still shows what it knew", await panel.getByText("2 attempts").isVisible());
    say("still there");
    await page.locator("h1").locator("..").getByText("Completed").first().waitFor({ timeout: 60_000 });
    const shown = await panel.getByText("2 attempts").count();
    check("after it, nothing is missing or doubled", shown === 1, shown);
  },
  { allowed: ["ERR_INTERNET_DISCONNECTED", "Failed to fetch", "net::ERR", "Failed to load resource"] },
);
process.exit(process.exitCode ?? 0);
