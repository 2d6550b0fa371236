// A walk without a mouse: navigation, list, palette, help, dialog.
import { drive } from "./harness.mjs";

await drive("keyboard", async ({ page, check, open, sees, focused }) => {
  const press = (key) => page.keyboard.press(key);
  await open("/");
  await press("Tab");
  check("the first stop skips to the content", (await focused()).includes("Skip"), await focused());
  await press("Enter");
  check("and does", await page.evaluate(() => document.activeElement?.id === "main"));

  await press("g");
  await press("r");
  await page.waitForURL(/\/runs/);
  await page.getByRole("region", { name: "Runs", exact: true }).locator("tr[data-row]").first().waitFor();
  await press("j");
  await press("j");
  await press("x");
  await sees("x selects the row of j", page.getByText("1 run selected"));
  const second = await page.locator("tbody tr[data-row]").nth(1).getAttribute("data-row");
  await sees("which is the second one", page.locator(`[data-open="${second}"]:focus`));
  await press("Escape");
  await press("/");
  await page.keyboard.type("order-3 ");
  check("letters typed into a field are no shortcuts", page.url().includes("/runs"));
  await press("Escape");
  await press("g");
  await press("h");
  await page.waitForURL(/\/$/);

  await press("Control+k");
  await page.keyboard.type("queues");
  await press("Enter");
  await page.waitForURL(/\/queues/);
  check("the palette goes to pages", true);
  await press("Control+k");
  await page.keyboard.type("shop.Watch");
  await sees("and finds runs", page.getByRole("option", { name: /shop\.Watch [0-9a-f]/ }).first());
  await press("Escape");

  await press("?");
  await sees("? shows the keys", page.getByRole("heading", { name: "Keyboard shortcuts" }));
  await press("g");
  await press("r");
  check("keys do nothing behind a dialog", page.url().endsWith("/queues"), page.url());
  await press("Escape");

  await press("g");
  await press("r");
  await page.waitForURL(/\/runs/);
  await page.getByRole("region", { name: "Runs", exact: true }).locator("tr[data-row]").first().waitFor();
  await press("n");
  await page.getByRole("dialog").waitFor();
  const at = await page.evaluate(() => document.activeElement?.tagName);
  check("a dialog begins at its first field", at === "SELECT", at);
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await press("k");
  await press("Enter");
  await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
  check("Enter opens the run", true);
});
