import { Dialog } from "~/components/Dialog";
import { usePreferences } from "~/model/preferences";
import { text } from "~/texts/en";
import { NAVIGATION } from "./pages";
import styles from "./Help.module.css";

export function Help({ onClose }: { onClose: () => void }) {
  const { keys } = usePreferences();
  const groups: [string, [string[], string][]][] = [
    [
      text.keys.everywhere,
      [
        [["Ctrl", "K"], text.keys.palette],
        [["/"], text.keys.filter],
        [["z"], text.keys.zone],
        [["l"], text.keys.live],
        [["."], text.keys.actions],
        [["?"], text.keys.help],
        [["Esc"], text.keys.back],
      ],
    ],
    [
      text.keys.lists,
      [
        [["j", "k"], text.keys.rows],
        [["Enter"], text.keys.open],
        [["o"], text.keys.peek],
        [["x"], text.keys.select],
        [["Shift", "x"], text.keys.range],
      ],
    ],
    [
      text.keys.page,
      [
        [["e"], text.keys.why],
        [["t"], text.keys.trigger],
        [["p"], text.keys.pause],
      ],
    ],
    [text.keys.go, NAVIGATION.filter((place) => place.go).map((place) => [["g", place.go as string], place.label])],
  ];
  return (
    <Dialog isOpen onClose={onClose} title={text.keys.title} width="medium">
      {!keys && <p>{text.keys.off}</p>}
      <div className={styles.groups}>
        {groups.map(([title, rows]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {rows.map(([pressed, told]) => (
                <div key={told}>
                  <dt>
                    {pressed.map((one) => (
                      <kbd key={one}>{one}</kbd>
                    ))}
                  </dt>
                  <dd>{told}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
