/** Texts about the end of a pause or a silence. */
export const words = {
  until: "Until",
  ends: {
    keep: "As it is",
    open: "Somebody resumes it",
    "1h": "In one hour",
    "8h": "In eight hours",
    "1d": "Tomorrow at this time",
    "7d": "In a week",
    at: "At a time …",
  },
  at: "Time",
  atHint: (zone: string) => `In ${zone}.`,
  past: "Choose a time that lies ahead.",
};
