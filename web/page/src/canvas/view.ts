/** Pan and zoom as pure arithmetic. A view maps a point p of the picture to p * scale + (x, y) on screen. */

export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Rect extends Size {
  readonly x: number;
  readonly y: number;
}

export const SMALLEST = 0.08;
export const LARGEST = 3;
/** The least scale at which the texts of cards are read with ease. */
export const READABLE = 0.8;
/** The least scale at which they can be read at all. */
export const LEGIBLE = 0.55;

const within = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Zoom by a factor; the point under the pointer stays where it is. */
export function zoomAt(view: View, at: { x: number; y: number }, factor: number): View {
  const scale = within(view.scale * factor, SMALLEST, LARGEST);
  const ratio = scale / view.scale;
  return { x: at.x - (at.x - view.x) * ratio, y: at.y - (at.y - view.y) * ratio, scale };
}

export function panned(view: View, dx: number, dy: number): View {
  return { ...view, x: view.x + dx, y: view.y + dy };
}

/** The view that shows a rectangle whole, in the middle. */
export function fitted(rect: Rect, screen: Size, margin = 24, largest = 1.25): View {
  const wide = Math.max(1, screen.width - 2 * margin);
  const high = Math.max(1, screen.height - 2 * margin);
  const scale = within(Math.min(wide / rect.width, high / rect.height), SMALLEST, largest);
  return centred(rect, screen, scale);
}

/** The view to begin with: all of it if that can be read, else the part around its first box, a source. */
export function beginning(rect: Rect, screen: Size, box?: Rect, margin = 24): View {
  const first = box ?? { x: rect.x, y: rect.y, width: 0, height: 0 };
  const whole = fitted(rect, screen, margin);
  if (whole.scale >= LEGIBLE) return whole;
  const scale = READABLE;
  const around = centred(first, screen, scale);
  const middle = centred(rect, screen, scale);
  // A side that fits is in the middle. Of one that does not, nothing beyond its ends is shown.
  const placed = (at: number, start: number, size: number, room: number, fits: number): number =>
    size * scale <= room - 2 * margin
      ? fits
      : within(at, room - margin - (start + size) * scale, margin - start * scale);
  return {
    x: placed(around.x, rect.x, rect.width, screen.width, middle.x),
    y: placed(around.y, rect.y, rect.height, screen.height, middle.y),
    scale,
  };
}

/** The view with a rectangle's middle in the middle of the screen. */
export function centred(rect: Rect, screen: Size, scale: number): View {
  return {
    x: screen.width / 2 - (rect.x + rect.width / 2) * scale,
    y: screen.height / 2 - (rect.y + rect.height / 2) * scale,
    scale,
  };
}

/** The part of the picture that the screen shows. */
export function visible(view: View, screen: Size): Rect {
  return {
    x: -view.x / view.scale,
    y: -view.y / view.scale,
    width: screen.width / view.scale,
    height: screen.height / view.scale,
  };
}

/** Where a point of the screen lies in the picture. */
export function toPicture(view: View, at: { x: number; y: number }): { x: number; y: number } {
  return { x: (at.x - view.x) / view.scale, y: (at.y - view.y) / view.scale };
}
