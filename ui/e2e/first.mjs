// Nothing was ever run here.
import { drive } from "./harness.mjs";

await drive("first", async ({ page, check, open, sees, axe, shot }) => {
  await open("/");
  await sees("says so", page.getByText("Nothing has run here yet"));
  for (const command of ["afl init demo && cd demo", "afl dev", "afl submit hello.SayHello -i name=Ada"]) {
    await sees(command, page.getByText(command, { exact: true }));
  }
  check("each can be copied", (await page.getByRole("button", { name: "Copy the command" }).count()) === 3);
  await axe("first run");
  await shot("first");
  await open("/runs");
  await sees("no runs are no filtered runs", page.getByText("There are no runs"));
  await open("/runs?text=zebra");
  await sees("filtered runs are no missing runs", page.getByText("Nothing matches the filters"));
  await open("/runs?new=true");
  await sees("what is missing is named", page.getByText("No program is deployed"));
  await axe("empty runs");
});
