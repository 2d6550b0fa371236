/**
 * Opens pages of a running dashboard in a real browser and collects what went wrong.
 *
 *   import { drive } from "./harness.mjs";
 *   await drive("home", async ({ page, check, open, axe, shot }) => {
 *     await open("/");
 *     check("has a heading", await page.getByRole("heading", { name: "Home" }).isVisible());
 *     await axe("home");
 *   });
 *
 * Every script prints one line of JSON: {"name", "checks", "failures"}. Errors on the console, requests
 * against the content security policy and serious faults of accessibility are failures of their own.
 */
import { AxeBuilder } from "@axe-core/playwright";
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const BASE = process.env.BASE_URL ?? "http://127.0.0.1:7400";
const SHOTS = process.env.SHOTS ?? "";
/** Generous: other work may share the machine. */
const PATIENCE = 20_000;

export const values = process.env;

export async function drive(name, script, options = {}) {
  const checks = [];
  const failures = [];
  const check = (what, ok, more) => {
    checks.push(what);
    if (!ok) failures.push(more === undefined ? what : `${what}: ${show(more)}`);
  };
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  try {
    const context = await browser.newContext({
      baseURL: BASE,
      viewport: options.viewport ?? { width: 1440, height: 900 },
      colorScheme: options.dark ? "dark" : "light",
      reducedMotion: "reduce",
      acceptDownloads: true,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    watch(page, failures, options.allowed ?? []);
    await script({ page, context, check, values, ...tools(page, check) });
  } catch (error) {
    failures.push(`stopped: ${error.stack ?? error}`);
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify({ name, checks, failures, ...options.report }));
  if (failures.length) process.exitCode = 1;
}

function show(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Notes what no page should do. `allowed` has parts of messages that a script provokes. */
function watch(page, failures, allowed) {
  const note = (text) => {
    if (!allowed.some((part) => text.includes(part))) failures.push(text);
  };
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error") note(`console: ${text} ${message.location().url}`);
    else if (text.includes("Content Security Policy")) note(`policy: ${text}`);
  });
  page.on("pageerror", (error) => note(`page error: ${error.message}`));
  void page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
}

function tools(page, check) {
  /** Opens a path and waits until the page has its heading. */
  const open = async (path) => {
    await page.goto(path);
    await page.locator("h1").first().waitFor();
  };
  const axe = async (what) => {
    // faults alone are described, which takes less time; and there are no frames to put together
    const { violations } = await new AxeBuilder({ page })
      .options({ resultTypes: ["violations"] })
      .setLegacyMode()
      .analyze();
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    check(
      `${what} has no serious fault of accessibility`,
      serious.length === 0,
      serious.map(({ id, nodes }) => ({
        id,
        nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => [html.slice(0, 200), failureSummary]),
      })),
    );
  };
  /** Keeps a picture where SHOTS says; nothing otherwise. */
  const shot = async (what) => {
    if (!SHOTS) return;
    mkdirSync(SHOTS, { recursive: true });
    await page.screenshot({ path: `${SHOTS}/${what}.png` });
  };
  /** Says which element has the focus, by its role and name. */
  const focused = () =>
    page.evaluate(() => {
      const at = document.activeElement;
      return at ? `${at.tagName.toLowerCase()}:${at.getAttribute("aria-label") ?? at.textContent?.trim()}` : "";
    });
  const sees = async (what, locator) => {
    try {
      await locator.first().waitFor();
      check(what, true);
    } catch {
      check(what, false, `not seen on ${page.url()}`);
    }
  };
  return { open, axe, shot, focused, sees };
}
