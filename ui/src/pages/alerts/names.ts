import { words } from "~/texts/alertForms";

/** What is wrong with the name of a new rule or channel. */
export function nameProblem(name: string, form: RegExp, taken: readonly string[]): string | null {
  if (!form.test(name)) return words.nameWrong;
  return taken.includes(name) ? words.nameTaken : null;
}
