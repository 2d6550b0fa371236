// A server that wants to know who is asking.
import { drive } from "./harness.mjs";

await drive(
  "token",
  async ({ page, check, sees, axe, values }) => {
    await page.goto("/runs");
    const dialog = page.getByRole("dialog", { name: "Who is asking?" });
    await dialog.waitFor();
    await axe("token dialog");
    await dialog.getByLabel("Token").fill("wrong");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await sees("a wrong token is refused", dialog.getByText("The server does not know this token."));
    await dialog.getByLabel("Token").fill(values.TOKEN);
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.waitFor({ state: "detached" });
    await sees("then the page is there", page.getByText("There are no runs"));
    await sees("and live", page.getByText("Live", { exact: true }));
    await page.reload();
    await sees("also after a reload", page.getByText("There are no runs"));
    await page.getByRole("button", { name: "You and your settings" }).click();
    await sees("it says who one is", page.getByText("ada · admin"));
    await page.getByRole("menuitem", { name: "Forget the token" }).click();
    await sees("a forgotten token is asked for", page.getByRole("dialog", { name: "Who is asking?" }));
    check("done", true);
  },
  { allowed: ["401"] },
);
