import { describe, expect, it } from "vitest";
import { boxText, CannotEdit, freeName, withBoxOnArrow, withBoxText } from "../src/lib/yaml_edit.ts";

const YAML = `network: n
boxes:
  in:
    source: {rate: 5}
  slow:
    filter: spd < 40
    from: in
  both:
    union: [in, slow]
  out:
    output: {memory: x}
    from: both
`;

describe("edits of a text", () => {
  it("find a box and change it", () => {
    expect(boxText(YAML, "slow")).toBe("slow:\n  filter: spd < 40\n  from: in\n");
    expect(withBoxText(YAML, "slow", "slow:\n  filter: spd < 9\n  from: in\n")).toBe(YAML.replace("40", "9"));
  });
  it("put a box on an arrow", () => {
    const text = withBoxOnArrow(YAML, "filter", "f", "slow", "both");
    expect(text).toContain('  f:\n    filter: "true"\n    from: slow\n  both:\n    union: [in, f]\n');
    expect(withBoxOnArrow(YAML, "connection_point", "p", "both", "out")).toContain("    from: p\n");
  });
  it("do not mistake a part of a name for the name", () => {
    const text = YAML.replace("[in, slow]", "[in2, in]").replace(
      "  in:",
      "  in2:\n    source: {rate: 5}\n  in:",
    );
    expect(withBoxOnArrow(text, "filter", "f", "in", "both")).toContain("union: [in2, f]");
  });
  it("refuse what they cannot do with a sentence", () => {
    expect(() => boxText(YAML, "nobody")).toThrow(CannotEdit);
    expect(() => withBoxOnArrow(YAML, "tumble", "f", "in", "slow")).toThrow(CannotEdit);
    expect(() => withBoxOnArrow(YAML, "filter", "f", "out", "slow")).toThrow(CannotEdit);
  });
  it("choose names that are free", () => {
    expect(freeName("filter", [])).toBe("filter_new");
    expect(freeName("connection_point", ["point_new", "point_new_2"])).toBe("point_new_3");
  });
});
