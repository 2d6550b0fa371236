// Every page around runs, light and wide, dark and narrow: readable for everybody.
import { drive } from "./harness.mjs";

const TALL = 720;

/** Until the page shows something else than that it loads. */
async function settled(page) {
  await page.getByRole("status", { name: /loading|reading|opening|checking/i }).first().waitFor({ state: "hidden" });
}

async function everyPage({ page, open, axe, shot }) {
  const paths = {
    jobs: "/bulk",
    flows: "/flows",
    flow: "/flows/default/shop.Order",
    source: "/flows/default/shop.Order?tab=source",
    facets: "/flows/default/shop.Order?tab=facets",
    versions: "/flows/default/shop.Order?tab=versions",
    playground: "/playground",
    agents: "/agents",
    inbox: "/inbox",
    queues: "/queues",
    workers: "/workers",
    schedules: "/schedules",
    logs: "/logs",
    cost: "/cost",
    settings: "/settings",
    tokens: "/settings?tab=tokens",
    audit: "/settings?tab=audit",
    hooks: "/settings?tab=hooks",
    breakers: "/settings?tab=breakers",
    you: "/settings?tab=you",
  };
  for (const [name, path] of Object.entries(paths)) {
    await open(path);
    await settled(page);
    await axe(name);
    await shot(name);
  }
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 1024, height: TALL });
  for (const [name, path] of Object.entries(paths)) {
    await open(path);
    await settled(page);
    await axe(`${name} in the dark`);
    await shot(`${name}-dark-1024`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1440, height: 900 });
}

await drive("looks", everyPage);
