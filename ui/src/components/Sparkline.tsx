import { box, useCanvas } from "./canvas";
import styles from "./Sparkline.module.css";

interface Properties {
  values: readonly number[];
  label: string;
  /** A token of the palette, such as --running-solid. */
  color?: string;
  /** Bars are for counts of things that happen now and then. */
  form?: "line" | "bars";
}

/** A small picture without axes: shows the shape, not the numbers. */
export function Sparkline({ values, label, color = "--accent-solid", form = "line" }: Properties) {
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      if (form === "bars") {
        const each = width / Math.max(1, values.length);
        const most = Math.max(1, ...values);
        values.forEach((value, index) => {
          const high = value > 0 ? Math.max(3, (value / most) * (height - 2)) : 1;
          context.fillStyle = paint(value > 0 ? color : "--line-color");
          box(context, index * each, height - high, Math.max(1, each - 1.5), high, 1);
        });
        return;
      }
      if (values.length < 2) return;
      const most = Math.max(1e-9, ...values);
      const x = (index: number) => (index / (values.length - 1)) * (width - 2) + 1;
      const y = (value: number) => height - 2 - (value / most) * (height - 4);
      context.beginPath();
      values.forEach((value, index) => (index === 0 ? context.moveTo(x(index), y(value)) : context.lineTo(x(index), y(value))));
      context.strokeStyle = paint(color);
      context.lineWidth = 1.5;
      context.lineJoin = "round";
      context.stroke();
      context.lineTo(x(values.length - 1), height);
      context.lineTo(x(0), height);
      context.globalAlpha = 0.12;
      context.fillStyle = paint(color);
      context.fill();
      context.globalAlpha = 1;
    },
    [values, color, form],
  );
  return <canvas ref={ref} className={styles.line} role="img" aria-label={label} />;
}
