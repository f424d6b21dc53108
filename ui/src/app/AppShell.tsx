import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { setNamespace } from "~/api/namespace";
import { useSession } from "~/api/session";
import { Icon } from "~/components/Icon";
import { classes } from "~/components/classes";
import { Popover } from "~/components/Popover";
import { TipLayer, useTip } from "~/components/Tip";
import { ToastLayer } from "~/components/Toast";
import { startPulse } from "~/live/pulse";
import { text } from "~/texts/en";
import { Banners } from "./Banners";
import { useGlobalKeys } from "./keys";
import { Overlays } from "./Overlays";
import { NAVIGATION, type Place } from "./pages";
import { SignInGate } from "./SignInGate";
import { TopBar } from "./TopBar";
import styles from "./AppShell.module.css";

export function AppShell() {
  const namespace = useRouterState({ select: (state) => (state.location.search as { ns?: string }).ns });
  // Before the children ask for anything.
  setNamespace(namespace);
  const isIn = useSession()?.is_signed_in ?? false;
  useEffect(() => (isIn ? startPulse() : undefined), [namespace, isIn]);
  useGlobalKeys();
  return (
    <>
      <a href="#main" className={styles.skip}>
        {text.nav.skip}
      </a>
      <div className={styles.shell}>
        <Rail />
        <div className={styles.column}>
          <TopBar />
          <Banners />
          <main id="main" tabIndex={-1} className={styles.main} key={namespace ?? ""}>
            <SignInGate>
              <Outlet />
            </SignInGate>
          </main>
        </div>
        <BottomBar />
      </div>
      <Overlays />
      <ToastLayer />
      <TipLayer />
    </>
  );
}

function useIsHere(): (place: Place) => boolean {
  const path = useRouterState({ select: (state) => state.location.pathname.replace(/^.*?\/ui(?=\/|$)/, "") || "/" });
  return (place) => (place.to === "/" ? path === "/" : path === place.to || path.startsWith(`${place.to}/`));
}

function Rail() {
  const isHere = useIsHere();
  return (
    <nav className={styles.rail} aria-label={text.nav.label}>
      <Link to={"/" as never} className={styles.brand} aria-label={text.product}>
        <Mark />
        <span>{text.product}</span>
      </Link>
      <ul>
        {NAVIGATION.map((place) => (
          <RailItem key={place.to} place={place} isHere={isHere(place)} />
        ))}
      </ul>
    </nav>
  );
}

function RailItem({ place, isHere }: { place: Place; isHere: boolean }) {
  const tip = useTip(place.label);
  return (
    <li className={classes(place.startsGroup && styles.group)}>
      <Link to={place.to as never} className={classes(styles.item, isHere && styles.here)} aria-current={isHere ? "page" : undefined} {...(tip as object)}>
        <Icon name={place.icon} />
        <span>{place.label}</span>
      </Link>
    </li>
  );
}

function BottomBar() {
  const isHere = useIsHere();
  const [isOpen, setOpen] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const main = NAVIGATION.filter((place) => place.isMain).slice(0, 4);
  const rest = NAVIGATION.filter((place) => !main.includes(place));
  return (
    <nav className={styles.bottom} aria-label={text.nav.label}>
      {main.map((place) => (
        <Link key={place.to} to={place.to as never} className={classes(styles.thumb, isHere(place) && styles.here)} aria-current={isHere(place) ? "page" : undefined}>
          <Icon name={place.icon} />
          <span>{place.label}</span>
        </Link>
      ))}
      {rest.length > 0 && (
        <>
          <button ref={anchor} type="button" className={classes(styles.thumb, rest.some(isHere) && styles.here)} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Icon name="menu" />
            <span>{text.nav.more}</span>
          </button>
          <Popover isOpen={isOpen} onClose={() => setOpen(false)} anchor={anchor} label={text.nav.more} side="above" align="end">
            <ul className={styles.sheet}>
              {rest.map((place) => (
                <li key={place.to}>
                  <Link to={place.to as never} className={styles.item} onClick={() => setOpen(false)}>
                    <Icon name={place.icon} />
                    <span>{place.label}</span>
                  </Link>
                </li>
              ))}
            </ul>
          </Popover>
        </>
      )}
    </nav>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="9" fill="var(--accent-solid)" />
      <path d="M11 24V8.5h11M11 16h8" fill="none" stroke="#fff" strokeWidth="3" strokeLinecap="round" strokeLinejoin="round" />
      <circle cx="22.5" cy="22.5" r="2.5" fill="#c3c6ff" />
    </svg>
  );
}
