import { LOCALE } from "./times";

const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumFractionDigits: 1 });

export interface Bounded {
  count: number;
  more: boolean;
}

export function number(value: number): string {
  return whole.format(value);
}

export function compact(value: number): string {
  return Math.abs(value) < 10_000 ? whole.format(value) : short.format(value).toLowerCase();
}

/** A count that stopped at a bound says so: "10,000+". */
export function bounded(value: Bounded): string {
  return `${whole.format(value.count)}${value.more ? "+" : ""}`;
}

export function percent(share: number): string {
  const value = share * 100;
  if (share > 0 && value < 1) return "<1 %";
  if (share < 1 && value > 99) return ">99 %";
  return `${Math.round(value)} %`;
}

const SIZES = ["B", "KB", "MB", "GB", "TB"];

export function bytes(value: number): string {
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < SIZES.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${SIZES[unit]}`;
}
