// With `afl dev`, a mistake in a source is told on every page while it is there.
import { readFileSync, writeFileSync } from "node:fs";
import { drive } from "./harness.mjs";

await drive("dev", async ({ page, check, open, sees, axe, shot, values }) => {
  const right = readFileSync(values.FLOW, "utf8");
  await open("/runs");
  await page.getByText("Live", { exact: true }).waitFor();
  const strip = page.getByRole("region", { name: "Mistakes in the sources" });
  check("sources without a mistake are not talked about", (await strip.count()) === 0);
  writeFileSync(values.FLOW, right.replace("greeted.text)", "greted.text)"));
  await sees("a mistake is told with its place", strip.getByText("flows/hello.afl:11:28"));
  await sees("its code", strip.getByText("AFL1011"));
  await sees("and its message", strip.getByText("there is no step `greted`"));
  await axe("dev strip");
  await shot("dev");
  await page.getByRole("link", { name: "Home" }).first().click();
  await sees("on every page", strip.getByText("AFL1011"));
  writeFileSync(values.FLOW, right);
  await strip.waitFor({ state: "detached" });
  check("a mistake that is mended is forgotten", true);
});
