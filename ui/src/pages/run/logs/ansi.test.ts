import { expect, it } from "vitest";
import { pieces } from "./ansi";

it("leaves plain lines alone, also those that look like HTML", () => {
  expect(pieces("<b>x</b>")).toEqual([{ text: "<b>x</b>", className: "" }]);
});

it("takes colours and looks of terminals", () => {
  const [first, second] = pieces("\u001b[1;31mbad\u001b[0m <i>ok");
  expect(first).toMatchObject({ text: "bad", className: "text-failed font-semibold" });
  expect(second).toMatchObject({ text: " <i>ok" });
});

it("takes the colours of the palette", () => {
  const [first] = pieces("\u001b[38;5;196mred\u001b[0m");
  expect(first?.style).toEqual({ color: "rgb(255, 0, 0)" });
});
