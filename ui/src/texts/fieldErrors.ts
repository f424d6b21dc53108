/** Says what is wrong with a field of a form that a schema makes. */
import type { FormTexts } from "~/model/schemaForm";

const characters = (count: number) => (count === 1 ? "one character" : `${count} characters`);

export const fieldErrors: FormTexts = {
  missing: "This is needed.",
  notAnInteger: "Write a whole number.",
  notANumber: "Write a number.",
  notJson: "This is not JSON.",
  notAnInstant: "Write a time such as 2026-11-19T08:00:00Z.",
  tooShort: (least: number) => `Write at least ${characters(least)}.`,
  tooLong: (most: number) => `Write at most ${characters(most)}.`,
  tooSmall: (least: number, isOpen: boolean) => (isOpen ? `It must be more than ${least}.` : `It must be at least ${least}.`),
  tooLarge: (most: number, isOpen: boolean) => (isOpen ? `It must be less than ${most}.` : `It must be at most ${most}.`),
  pattern: "It does not have the expected form.",
};
