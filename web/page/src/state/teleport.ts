/** Teleport (A35): show a place of the diagram, whatever group hides it. */

import { shownWith } from "../canvas/groups.ts";
import { choice } from "./choice.svelte.ts";
import { live } from "./live.svelte.ts";

export function goToNode(name: string): void {
  const node = live.node(name);
  if (!node) return;
  choice.reveal(node.group);
  choice.chooseBox(name);
  choice.goTo({ x: node.x, y: node.y, width: node.w, height: node.h });
}

export function goToArrow(id: string): void {
  const arrow = live.network?.arrows.find((each) => each.id === id);
  const [tail, head] = [live.node(arrow?.tail ?? ""), live.node(arrow?.head ?? "")];
  if (!arrow || !tail || !head) return;
  choice.reveal(tail.group);
  choice.reveal(head.group);
  choice.chooseArrow(id);
  const [x, y] = [Math.min(tail.x, head.x), Math.min(tail.y, head.y)];
  choice.goTo({
    x,
    y,
    width: Math.max(tail.x + tail.w, head.x + head.w) - x,
    height: Math.max(tail.y + tail.h, head.y + head.h) - y,
  });
}

/** The arrow that is chosen on the canvas, be it one at a closed group. */
export function chosenArrow(): ReturnType<typeof shownWith>["arrows"][number] | null {
  if (!live.network || choice.arrow === null) return null;
  const own = live.network.arrows.find((arrow) => arrow.id === choice.arrow);
  return (
    own ?? shownWith(live.network, choice.closed).arrows.find((arrow) => arrow.id === choice.arrow) ?? null
  );
}
