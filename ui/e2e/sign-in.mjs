// A server with an identity provider: signing in there, changing something, signing out.
import { drive } from "./harness.mjs";

await drive(
  "sign-in",
  async ({ page, sees, axe, check }) => {
    await page.goto("/settings?tab=tokens");
    const dialog = page.getByRole("dialog", { name: "Who is asking?" });
    const signIn = dialog.getByRole("link", { name: "Sign in" });
    await signIn.waitFor();
    await axe("sign-in dialog");
    await signIn.click();
    await sees("back on the page that it was", page.getByRole("button", { name: "New token" }));
    check("the address is that of the page", page.url().endsWith("/settings?tab=tokens"), page.url());
    await page.getByRole("button", { name: "New token" }).click();
    const form = page.getByRole("dialog", { name: "New token" });
    await form.getByLabel("Name").fill("made by a session");
    await form.getByRole("button", { name: "Make it" }).click();
    await sees("something is changed", page.getByText("Copy it now"));
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "You and your settings" }).click();
    await sees("it says who one is", page.getByText("oidc:ada · admin"));
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await sees("then it is asked again", dialog);
  },
  { allowed: ["401"] },
);
