/** What the scripts about the page of a run share. */

export const runs = JSON.parse(process.env.RUNS ?? "{}");

export const panelOf = (page) => page.getByTestId("panel");
export const dialogOf = (page) => page.getByRole("dialog");

/** Confirms the open dialog once it has said what will happen; gives that sentence. */
export async function confirm(page, button) {
  const dialog = dialogOf(page);
  const action = dialog.getByRole("button", { name: button, exact: true });
  await page.waitForFunction(
    (name) =>
      [...document.querySelectorAll('[role="dialog"] button')].some(
        (one) => one.textContent === name && !one.disabled,
      ),
    button,
  );
  const sentence = (await dialog.getByTestId("consequence").textContent()) ?? "";
  await action.click();
  await dialog.waitFor({ state: "detached" });
  return sentence;
}

export async function openNewRun(page) {
  const before = page.url();
  await page.getByRole("link", { name: /^Open run/ }).first().click();
  await page.waitForFunction((url) => location.href !== url, before);
  await page.locator("h1").first().waitFor();
}
