// Drags the canvas for some frames, zooms it for as many, and tells the milliseconds between frames.
async (frames) => {
  const canvas = document.querySelector('[role="application"]');
  const box = canvas.getBoundingClientRect();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  // The canvas captures the pointer, which the browser grants to real pointers only.
  canvas.setPointerCapture = () => undefined;
  const pointer = (type, dx, dy) =>
    canvas.dispatchEvent(
      new PointerEvent(type, { clientX: x + dx, clientY: y + dy, button: 0, buttons: 1, bubbles: true, pointerId: 1 }),
    );
  const drag = (at) => pointer("pointermove", 90 * Math.sin(at / 12), 60 * Math.cos(at / 12));
  const zoom = (at) =>
    canvas.dispatchEvent(
      new WheelEvent("wheel", { deltaY: at % 40 < 20 ? -18 : 18, clientX: x, clientY: y, bubbles: true, cancelable: true }),
    );
  const timed = (move) =>
    new Promise((done) => {
      const times = [];
      const frame = (now) => {
        times.push(now);
        if (times.length > frames) return done(times.slice(1).map((time, at) => time - times[at]).sort((a, b) => a - b));
        move(times.length);
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
  const told = (between) => {
    const rank = (share) => Math.round(between[Math.floor(share * (between.length - 1))] * 10) / 10;
    return { p50: rank(0.5), p95: rank(0.95), max: rank(1) };
  };
  pointer("pointerdown", 0, 0);
  const dragged = told(await timed(drag));
  pointer("pointerup", 0, 0);
  const zoomed = told(await timed(zoom));
  return {
    drag_p50: dragged.p50, drag_p95: dragged.p95, drag_max: dragged.max,
    zoom_p50: zoomed.p50, zoom_p95: zoomed.p95, zoom_max: zoomed.max,
  };
};
