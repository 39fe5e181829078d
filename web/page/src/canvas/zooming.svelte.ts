/** Whether the wheel turns. Meanwhile the picture is drawn once and only scaled; at rest it is sharp again. */

const RESTS = 160; // milliseconds after the last turn

export class Zooming {
  now = $state(false);
  private resting: ReturnType<typeof setTimeout> | undefined;

  turned(): void {
    this.now = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => (this.now = false), RESTS);
  }
}
