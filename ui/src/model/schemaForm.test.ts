import { expect, test } from "vitest";
import { fieldsOf, type FormTexts, payloadOf, valuesOf } from "./schemaForm";

const texts: FormTexts = {
  missing: "missing",
  notAnInteger: "integer",
  notANumber: "number",
  notJson: "json",
  notAnInstant: "instant",
  tooShort: (least) => `short ${least}`,
  tooLong: (most) => `long ${most}`,
  tooSmall: (least, isOpen) => `small ${least} ${isOpen}`,
  tooLarge: (most, isOpen) => `large ${most} ${isOpen}`,
  pattern: "pattern",
};
const SCHEMA = {
  type: "object",
  $defs: { Color: { enum: ["red", "blue"] }, Address: { type: "object", properties: { street: { type: "string" } } } },
  properties: {
    note: { anyOf: [{ type: "string", maxLength: 5 }, { type: "null" }], default: null },
    order: { type: "integer", minimum: 1 },
    share: { type: "number", exclusiveMinimum: 0, maximum: 1, default: 0.5 },
    isGift: { type: "boolean" },
    color: { $ref: "#/$defs/Color", description: "Of the box" },
    address: { $ref: "#/$defs/Address" },
    at: { type: "string", format: "date-time" },
    code: { type: "string", pattern: "^[a-z]+$", minLength: 2 },
    sizes: { type: "array", items: { type: "integer" } },
    loop: { $ref: "#/properties/loop" },
  },
  required: ["order", "color"],
};

test("a schema becomes fields, the required ones first", () => {
  const fields = fieldsOf(SCHEMA) ?? [];
  expect(fields.map((field) => [field.name, field.kind, field.type])).toEqual([
    ["order", "integer", "integer"],
    ["color", "choice", '"red" | "blue"'],
    ["note", "text", "string | null"],
    ["share", "number", "number"],
    ["isGift", "boolean", "boolean"],
    ["address", "json", "object"],
    ["at", "instant", "date-time"],
    ["code", "text", "string"],
    ["sizes", "json", "integer[]"],
    ["loop", "json", "any"],
  ]);
  expect(fields.find((field) => field.name === "color")?.description).toBe("Of the box");
});

test("a schema that names no fields makes no form, unless there are none", () => {
  expect(fieldsOf(null)).toBeNull();
  expect(fieldsOf({ type: "object" })).toBeNull();
  expect(fieldsOf({ type: "object", properties: {}, additionalProperties: false })).toEqual([]);
});

test("texts become a payload, and empty ones are left out", () => {
  const fields = fieldsOf(SCHEMA) ?? [];
  const values = { order: " 7 ", color: '"red"', share: "", isGift: "true", address: '{"street": "x"}', note: "null", code: "ab", at: "2026-11-19T08:00:00Z" };
  expect(payloadOf(fields, values, texts)).toEqual({
    payload: { order: 7, color: "red", isGift: true, address: { street: "x" }, note: null, code: "ab", at: "2026-11-19T08:00:00Z" },
    errors: {},
  });
});

test("each error is told at its field", () => {
  const fields = fieldsOf(SCHEMA) ?? [];
  const values = { order: "1.5", share: "0", note: "too long", code: "A1", at: "tomorrow", sizes: "[1" };
  expect(payloadOf(fields, values, texts).errors).toEqual({ order: "integer", color: "missing", share: "small 0 true", note: "long 5", code: "pattern", at: "instant", sizes: "json" });
  expect(payloadOf(fields, { order: "0", color: '"red"', share: "2", code: "a" }, texts).errors).toEqual({ order: "small 1 false", share: "large 1 false", code: "short 2" });
});

test("a payload becomes texts and comes back the same", () => {
  const fields = fieldsOf(SCHEMA) ?? [];
  const payload = { order: 7, color: "blue", note: "null?", sizes: [1, 2], isGift: false };
  expect(payloadOf(fields, valuesOf(fields, payload), texts)).toEqual({ payload, errors: {} });
});
