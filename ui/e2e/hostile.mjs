// Texts that would like to be code, on every page: they are shown as they are, and none of them runs.
import { drive } from "./harness.mjs";

await drive("hostile", async ({ page, check, open, values }) => {
  let asked = 0;
  page.on("dialog", (dialog) => {
    asked += 1;
    void dialog.dismiss();
  });
  const tabs = ["", "timeline", "steps", "events", "logs", "agents", "io", "source"];
  const runs = [values.GOOD, values.BROKEN, values.ASKS].flatMap((run) =>
    tabs.map((tab) => `/runs/${run}${tab ? `?tab=${tab}` : ""}`),
  );
  const steps = [`/runs/${values.GOOD}?step=0%2Fsaid`, `/runs/${values.BROKEN}?step=0%2Ffailed&panel=error`];
  const places = [
    "/",
    "/runs",
    "/runs?text=%3Cimg%20src%3Dx%20onerror%3Dwindow.__ran%3D1%3E",
    "/flows",
    "/flows/default/bad.Good",
    "/flows/default/bad.Good?tab=source",
    "/inbox",
    "/queues",
    "/workers",
    "/schedules",
    "/logs",
    "/settings?tab=hooks",
    "/settings?tab=tokens",
    "/settings?tab=audit",
    "/flows/javascript:window.__ran=1/x",
    "/answer/%3Cscript%3E",
  ];
  for (const path of [...places, ...runs, ...steps]) {
    await open(path);
    await page.waitForTimeout(400);
    const ran = await page.evaluate(() => window.__ran);
    check(`nothing ran on ${path}`, ran === undefined);
  }
  await open("/settings?tab=hooks");
  const shown = page.getByText("<script>window.__ran=1</script>").first();
  await shown.waitFor();
  check("what looks like code is shown as text", true);
  const links = await page.evaluate(() => [...document.querySelectorAll("a[href^='javascript:']")].length);
  check("no link leads to code", links === 0);
  check("nobody was asked anything", asked === 0);
}, { allowed: ["404", "422", "status of 4"] });
