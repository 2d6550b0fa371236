// Dark and light: chosen, kept, there before the first paint, and readable at both widths.
import { drive } from "./harness.mjs";

const theme = (page) => page.evaluate(() => document.documentElement.dataset.theme);

for (const viewport of [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
]) {
  await drive(
    `themes ${viewport.width}`,
    async ({ page, check, open, axe, shot }) => {
      const fits = async (what) => {
        const wide = await page.evaluate(
          () => document.documentElement.scrollWidth - window.innerWidth,
        );
        check(`${what} is no wider than the window`, wide <= 0, wide);
      };
      await open("/");
      check("the system's choice is taken", (await theme(page)) === "dark");
      await page.getByRole("heading", { name: "Recent runs" }).waitFor();
      if (viewport.width > 1024) await axe("dark home");
      await fits("home");
      await shot(`home-dark-${viewport.width}`);
      await open("/runs");
      await page.locator("tbody tr[data-row]").first().waitFor();
      if (viewport.width > 1024) await axe("dark runs");
      await shot(`runs-dark-${viewport.width}`);
      await fits("runs");
      await page.getByRole("button", { name: "Colours" }).click();
      await page.getByRole("menuitemcheckbox", { name: "Light" }).click();
      check("light can be chosen", (await theme(page)) === "light");
      await page.addInitScript(() => {
        document.addEventListener("DOMContentLoaded", () => {
          window.themeAtFirst = document.documentElement.dataset.theme;
        });
      });
      await page.reload();
      await page.locator("tbody tr[data-row]").first().waitFor();
      check("and is there before the first paint", (await page.evaluate(() => window.themeAtFirst)) === "light");
      await shot(`runs-light-${viewport.width}`);
    },
    { viewport, dark: true },
  );
}
