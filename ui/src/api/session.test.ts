import { expect, it } from "vitest";
import { csrfOf, signInPlace } from "./session";

it("finds what has to be sent along among other cookies", () => {
  expect(csrfOf("a=1; afl_csrf=0f3d==; b=2")).toBe("0f3d==");
  expect(csrfOf("x_afl_csrf=1; afl_csrf_x=2")).toBeNull();
  expect(csrfOf("")).toBeNull();
});

it("comes back to the page with its filters", () => {
  expect(signInPlace("/runs?state=failed&text=a b")).toBe(
    "/auth/login?back=%2Fruns%3Fstate%3Dfailed%26text%3Da%20b",
  );
});
